import { expect } from 'chai';
import {
  anApprovingServer,
  approvalIdOf,
  type ApprovingServer,
} from '../http/an-approving-server.ts';
import { onTheCluster } from '../support/cluster/shared-cluster.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aRecordStore, prepareForRecords } from './a-record-store.ts';

const RULE = 'require operation=createPool';
const A_POOL = { name: 'web', templateName: 'default', replicas: 2 };

describe('approvals as custom resources, with two replicas', function () {
  const cluster = onTheCluster();
  const closes: (() => Promise<void>)[] = [];
  let first: ApprovingServer;
  let second: ApprovingServer;

  before(async () => {
    await prepareForRecords(cluster());
    await cluster().namespace('team-blue'); // of the tenant that asks
  });
  beforeEach(async () => {
    const [one, other] = [await aRecordStore(cluster()), await aRecordStore(cluster())];
    first = await anApprovingServer([RULE], { store: one.store.approvals });
    const { operations, clock } = first;
    second = await anApprovingServer([RULE], { store: other.store.approvals, operations, clock });
    closes.push(first.stop, second.stop, one.close, other.close);
  });
  afterEach(async () => {
    for (const close of closes.splice(0)) await close();
  });

  it('are decided once if both replicas decide at the same time', async () => {
    const body = { ...A_POOL, name: 'twice' };
    const id = approvalIdOf(await first.server.tenant.post('/sandboxpools', body));
    await eventually(() => second.parts.mirror.get(id) !== undefined, 'both know');
    const answers = await Promise.all([
      first.approve(id),
      second.decide(id, { decision: 'deny' }),
      first.decide(id, { decision: 'deny' }),
      second.approve(id),
    ]);

    expect(answers.map(({ status }) => status)).to.have.members([200, 409, 409, 409]);
    const decided = answers.find(({ status }) => status === 200)?.json.status;
    await eventually(
      () => [first, second].every(({ parts }) => parts.mirror.get(id)?.status === decided),
      'both know which',
    );
  });

  it('are shared by identical requests, decided on either replica, and used once', async () => {
    const key = first.server.tenant.key ?? '';
    const ask = (at: ApprovingServer) => at.server.anyone.post('/sandboxpools', A_POOL, { key });
    const [id, same] = (await Promise.all([ask(first), ask(second)])).map(approvalIdOf);
    expect(same).to.equal(id);
    await eventually(
      () => [first, second].every(({ parts }) => parts.mirror.get(id ?? '') !== undefined),
      'both have it',
    );

    expect((await second.approve(id ?? '')).json.status).to.equal('approved');
    await eventually(
      () => [first, second].every(({ parts }) => parts.mirror.get(id ?? '')?.status === 'approved'),
      'both know',
    );
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, count) => ask(count % 2 ? first : second)),
    );

    expect(
      answers.filter(({ status, headers }) => status === 201 && !headers['idempotency-replayed']),
    ).to.have.length(1);
    expect(first.operations.pools.size).to.equal(1);
    await eventually(
      () => first.parts.mirror.get(id ?? '')?.status === 'consumed',
      'it is consumed',
    );
  });
});
