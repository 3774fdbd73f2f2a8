import { expect } from 'chai';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { eventually } from '../support/harness/eventually.ts';
import type { InstanceFact } from '../../src/model/sandbox.ts';
import { aReplica, sharedStores } from '../support/harness/shared-supervisors.ts';

const CALLER = {
  namespace: 'alpha',
  team: 'alpha',
  user: 'alice',
  role: 'user',
  keyId: 'key',
} as const;

/** A replica that leads over one idle instance, and a way to tell it what its driver sees. */
const aLeader = async () => {
  const stores = await sharedStores({ pool: { replicas: 1 } });
  let tell: (fact: InstanceFact) => void = () => undefined;
  const view = stores.driver.view.bind(stores.driver);
  stores.driver.view = () => {
    const seen = view();
    return {
      ...seen,
      watch: async (report) => {
        tell = report;
        await seen.watch(report);
      },
    };
  };
  const one = await aReplica(stores, aCoordination(stores.clock));
  one.lead();
  const { pools } = one.supervisor;
  await eventually(() => pools.get(stores.pool.uid)?.counts.idle === 1, 'one is idle');
  const [id = ''] = one.supervisor.ids();
  const before = await stores.truth.read(id);
  return {
    ...one,
    stores,
    id,
    before,
    tell: (fact: InstanceFact) => {
      tell(fact);
    },
  };
};

describe('a sandbox after its store was restored from an older copy', () => {
  it('is idle again if it was claimed after the copy', async () => {
    const { supervisor, claim, stores, id, before, tell } = await aLeader();
    await claim(CALLER, { poolName: stores.pool.name });
    expect(supervisor.sandbox(id)?.status).to.equal('Running');

    tell({ ...before, afresh: true });

    expect(supervisor.sandbox(id)?.status).to.equal('Idle');
    expect(supervisor.pools.get(stores.pool.uid)?.counts).to.include({ idle: 1, running: 0 });
  });

  it('runs again even on a follower that saw it end', async () => {
    const { supervisor, claim, stores, id, die, tell } = await aLeader();
    await claim(CALLER, { poolName: stores.pool.name });
    const running = await stores.truth.read(id);
    const record =
      running.record &&
      ({ ...running.record, state: 'ending', end: { reason: 'deleted', exitCode: null } } as const);
    die();
    tell({ ...running, record });
    await eventually(
      () =>
        supervisor.sandbox(id)?.status === 'Stopping' &&
        supervisor.actors.pendingOf(id).length === 0,
      'it is left to its leader',
    );

    tell({ ...running, afresh: true });

    expect(supervisor.sandbox(id)?.status).to.equal('Running');
  });
});
