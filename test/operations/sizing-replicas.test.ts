import { expect } from 'chai';
import type { EnvRecord } from '../../src/model/envs/env.ts';
import { aGroup } from '../machines/autoscaling-examples.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { anEnvReplica, envStores } from '../support/harness/env-replicas.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';

const anEnv: Omit<EnvRecord, 'revision'> = {
  uid: 'e1',
  name: 'e',
  owner: { namespace: alice.namespace, team: alice.team, user: alice.user },
  createdAt: 1,
  labels: {},
  annotations: {},
  templateRef: { name: 't' },
  mode: 'WarmPool',
  overrides: {},
  members: [
    {
      name: 'm',
      clusterId: 'local',
      createdAt: 1,
      replicas: 0,
      config: { scalingGroup: 'g', maxReplicas: 50 },
      deleting: false,
    },
  ],
  groups: [aGroup({ up: { mode: 'Aggressive' } })],
  scaling: {},
  conditions: [],
  deleting: false,
};

/** Two replicas over an env with one member `m`, whose pool is empty. */
const twoReplicas = async () => {
  const stores = await envStores({
    pool: { name: 'm', replicas: 0, env: { uid: 'e1', name: 'e' } },
  });
  const { clock, pools, history, envs } = stores;
  await envs.create(anEnv);
  const makeOne = async () => {
    const replica = await anEnvReplica(stores);
    return { ...replica, claim: () => replica.claim(alice, { poolName: 'm' }) };
  };
  const [one, two] = [await makeOne(), await makeOne()];
  const size = (): number =>
    [...pools.records.values()].find(({ name }) => name === 'm')?.replicas ?? -1;
  const decisions = () => history.decisions.get('e1/g') ?? [];
  /** Lets time go by, a quarter of a second at a time, until it is so. */
  const until = (look: () => boolean, what: string) =>
    eventually(() => {
      clock.advance(250);
      return look();
    }, what);
  return { one, two, anotherOne: makeOne, size, decisions, until, clock };
};

describe('a group on several replicas', () => {
  it('is sized by its leader for a claim that another replica refused', async () => {
    const { one, two, size, decisions, until } = await twoReplicas();
    one.lead();

    expect(await rejection(two.claim())).to.have.property('code', 'POOL_EXHAUSTED');
    await until(() => size() === 3 && decisions().length > 0, 'it grew');

    expect(decisions()[0]?.seen).to.include({ pending: 1 });
    await until(
      () =>
        two.supervisor.pools.get([...two.supervisor.pools.index.list(alice, 0, 1).ids][0] ?? '')
          ?.counts.idle === 3,
      'they are idle on the other',
    );
    expect(await two.claim()).to.have.property('status', 'Running');
  });

  it('is sized once if two replicas lead at the same time', async () => {
    const { one, two, size, decisions, until, clock } = await twoReplicas();
    one.lead();
    two.lead();
    await rejection(one.claim());
    await until(() => size() > 0 && decisions().length > 0, 'it grew');
    const since = clock.now();
    await until(() => clock.now() - since > 30_000, 'time goes by');

    expect(size()).to.equal(3);
    expect(
      decisions().flatMap(({ changes, outcomes }) =>
        changes
          .filter(({ member }) => outcomes[member]?.kind === 'done')
          .map(({ from, to }) => [from, to]),
      ),
    ).to.deep.equal([[0, 3]]);
  });

  it('keeps the refused claims that a dead leader knew', async () => {
    const { one, two, size, decisions, until } = await twoReplicas();
    await rejection(one.claim());
    one.lead();
    one.follow();

    two.lead();
    await until(() => size() === 3 && decisions().length > 0, 'it grew');

    expect(two.parts.groups.group('e1', 'g')?.state).to.match(/^enabled\./);
    expect(one.parts.groups.group('e1', 'g')?.state).to.equal('following');
  });
});

describe('an env on several replicas', () => {
  /** One that leads, and has grown for what was refused. */
  const grown = async () => {
    const replicas = await twoReplicas();
    replicas.one.lead();
    await rejection(replicas.one.claim());
    await replicas.until(() => replicas.size() === 3 && replicas.decisions().length > 0, 'it grew');
    const uid = [...replicas.two.supervisor.pools.index.list(alice, 0, 1).ids][0] ?? '';
    await replicas.until(
      () =>
        [replicas.one, replicas.two].every(
          ({ supervisor }) => supervisor.pools.get(uid)?.counts.idle === 3,
        ),
      'they are idle',
    );
    return replicas;
  };

  it('is not deleted while a sandbox runs that another replica has just handed out', async () => {
    const { one, two } = await grown();
    two.lag();
    await one.claim();

    expect(
      await rejection(two.parts.operations.deleteEnv(alice, 'e', { force: false })),
    ).to.have.property('code', 'ENV_HAS_RUNNING_SANDBOXES');
  });

  it('reports the same headroom everywhere, from the limits of member, group and quota', async () => {
    const { one, two } = await grown();
    const headroom = async (replica: typeof one) =>
      (await replica.parts.operations.getEnv(alice, 'e')).observed.map((member) => member.headroom);
    expect([await headroom(one), await headroom(two)]).to.deep.equal([[47], [47]]);

    await one.parts.operations.updateGroup(alice, { env: 'e', group: 'g' }, { maxReplicas: 5 });
    expect([await headroom(one), await headroom(two)]).to.deep.equal([[2], [2]]);
  });

  it('remembers a recent claim after a restart, and grows at idle 0', async () => {
    const { one, until, size, anotherOne } = await grown();
    one.follow();
    for (let count = 0; count < 3; count++) await one.claim();
    one.die();
    const other = await anotherOne();
    other.lead();

    await until(() => size() > 3, 'it grew');
  });
});
