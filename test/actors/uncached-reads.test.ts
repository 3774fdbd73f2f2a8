import { expect } from 'chai';
import { deleteSandbox } from '../../src/actors/sandbox/commands/delete-sandbox.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { FakeSandboxDriver } from '../support/fakes/fake-sandbox-driver.ts';
import { SharedDriver } from '../support/fakes/shared-driver.ts';
import {
  aReplica,
  sharedStores,
  type SharedReplica,
} from '../support/harness/shared-supervisors.ts';

const GRACE_MS = 5_000;
const REPLICAS = 5;
const INSTANCES = 20;

const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 300; turn++)
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
};

/** Replicas over instances that take their whole grace to end, of which the first one leads. */
const aWorld = async () => {
  const stores = await sharedStores({ pool: { replicas: INSTANCES } });
  const truth = new FakeSandboxDriver({
    reportsWrites: true,
    now: () => stores.clock.now(),
    graceMs: GRACE_MS,
  });
  const shared = aCoordination(stores.clock);
  const own = { ...stores, driver: new SharedDriver(truth) };
  const replicas: SharedReplica[] = [];
  for (let n = 0; n < REPLICAS; n++) replicas.push(await aReplica(own, shared));
  const [leader, other] = replicas;
  if (!leader || !other) throw new Error('too few replicas');
  leader.lead();
  await eventually(
    () =>
      replicas.every(
        ({ supervisor }) => supervisor.pools.get(stores.pool.uid)?.counts.idle === INSTANCES,
      ),
    'full',
  );
  const pass = async (ms: number): Promise<void> => {
    for (let second = 0; second < ms / 1_000; second++) {
      stores.clock.advance(1_000);
      await settled();
    }
  };
  const reads = (): number => truth.calls.filter((call) => call.startsWith('read')).length;
  return { ...stores, truth, leader, other, pass, reads };
};

describe('uncached reads of ending sandboxes', () => {
  it('do not happen during the grace period, on any replica', async () => {
    const { truth, leader, other, pass, reads, pools, pool, clock } = await aWorld();
    const { id } = await leader.claim(alice, { poolName: 'default' });
    await settled();
    const before = reads();

    await deleteSandbox({ supervisor: other.supervisor, clock })(alice, id);
    await pools.update({ ...pool, ...(await pools.get(pool.uid)), replicas: 0 });
    await settled();
    await pass(GRACE_MS);
    for (const each of truth.running()) truth.end(each, 137);
    await settled();

    expect(reads() - before).to.equal(0);
    expect(leader.supervisor.actors.size).to.equal(0);
  });

  it('are made only by the leader, for sandboxes that outlive their end', async () => {
    const { truth, pass, reads, pools, pool } = await aWorld();
    await pools.update({ ...pool, ...(await pools.get(pool.uid)), replicas: 0 });
    await settled();
    const ending = truth.running().length;

    await pass(GRACE_MS + 7_000);

    expect([ending, reads()]).to.deep.equal([INSTANCES, INSTANCES]);
  });
});
