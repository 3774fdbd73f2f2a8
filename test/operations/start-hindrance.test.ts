import { expect } from 'chai';
import { inspectedPools } from '../../src/actors/inspection/pool-actors.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { getPool, listPools } from '../../src/actors/pool/commands/pools.ts';
import { alice, aPolicy, aSupervisor } from '../support/harness/a-supervisor.ts';
import { aPool } from '../support/builders/a-pool.ts';
import { eventually } from '../support/harness/eventually.ts';
import { FakeSandboxDriver } from '../support/fakes/fake-sandbox-driver.ts';
import { rejection } from '../support/harness/rejection.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const PROBE = {
  action: { kind: 'exec' as const, argv: ['true'] },
  ...{ initialDelayMs: 0, periodMs: 1_000, timeoutMs: 1_000 },
  ...{ successThreshold: 1, failureThreshold: 1 },
};
const PULL = 'ImagePullBackOff: Back-off pulling image "nothing"';

describe('a pool that waits for a slot to start instances', () => {
  it('shows so in the debug view and in refused claims', async () => {
    const { definition } = aPool();
    const containers = definition.containers.map((each) => ({ ...each, readinessProbe: PROBE }));
    const probed = { definition: { ...definition, containers }, replicas: 1 };
    const world = await aSupervisor({
      pool: probed,
      policy: { refill: { ...aPolicy().refill, places: { first: 1, most: 1 } } },
      driver: new FakeSandboxDriver({ startsByItself: false, now: () => new TestClock().now() }),
    });
    const { supervisor, pools, pool } = world;
    const { index } = supervisor;
    await eventually(() => index.startingIn(pool.uid).length === 1, 'the first one starts');
    const { uid } = await pools.create(aPool({ ...probed, uid: 'later', name: 'later' }));
    const inspected = inspectedPools({ pools: supervisor.pools, records: pools });
    await eventually(() => inspected.inspect(uid) !== undefined, 'the later pool is there');
    const waits = 'it waits: the machine starts only a few instances';

    expect(inspected.inspect(uid)?.why.join()).to.include(waits);
    expect(inspected.inspect(pool.uid)?.why.join()).to.not.include(waits);
    expect(await rejection(world.claim(alice, { poolName: 'later' })))
      .to.have.nested.property('detail.hint')
      .that.matches(/^instances are waiting to start; claim with waitTimeoutSeconds/);
  });
});

describe('a pool whose instances cannot start', () => {
  const starting = async () => {
    const driver = new FakeSandboxDriver({
      startsByItself: false,
      now: () => new TestClock().now(),
    });
    const world = await aSupervisor({ pool: { replicas: 2 }, driver });
    const { supervisor, pool } = world;
    await eventually(() => supervisor.index.startingIn(pool.uid).length === 2, 'both start');
    const ids = supervisor.index.startingIn(pool.uid);
    await eventually(
      () => ids.every((id) => supervisor.sandbox(id)?.context.record !== undefined),
      'both are recorded',
    );
    const shown = async () => {
      const { phase, conditions } = await getPool({ supervisor })(alice, 'default');
      return { phase, degraded: conditions.find(({ type }) => type === 'Degraded') };
    };
    const refused = async (): Promise<Refusal> => {
      const error = await rejection(world.claim(alice, { poolName: 'default' }));
      if (!(error instanceof Refusal)) throw error;
      return error;
    };
    const hindered = (id: string): boolean =>
      supervisor.sandbox(id)?.context.hindrance !== undefined;
    return { ...world, ids, shown, refused, hindered };
  };

  it("is Degraded with the scheduler's message until a node has room", async () => {
    const {
      driver,
      ids: [one = '', other = ''],
      shown,
      hindered,
    } = await starting();
    expect(await shown())
      .to.deep.include({ phase: 'Pending' })
      .and.nested.include({ 'degraded.status': 'False' });

    driver.findNoPlace(one, 'Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.');
    await eventually(() => hindered(one), 'it has no place');
    expect(await shown())
      .to.deep.include({ phase: 'Degraded' })
      .and.nested.include({
        'degraded.status': 'True',
        'degraded.reason': 'Unschedulable',
        'degraded.message': 'Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.',
      });

    for (const id of [one, other]) driver.becomeAvailable(id);
    await eventually(() => !hindered(one), 'it has a place');
    expect(await shown())
      .to.deep.include({ phase: 'Ready' })
      .and.nested.include({ 'degraded.status': 'False' });
  });

  it('is shown as Degraded in lists, too', async () => {
    const {
      driver,
      supervisor,
      ids: [one = ''],
      hindered,
    } = await starting();
    driver.hinder(one, 'ContainerNotCreated', 'CreateContainerError: no such user');
    await eventually(() => hindered(one), 'it is hindered');

    const { items } = await listPools({ supervisor })(
      alice,
      { all: false },
      { limit: 10, offset: 0 },
    );
    expect(
      items.map(({ phase, conditions }) => [
        phase,
        conditions.find(({ type }) => type === 'Degraded')?.reason,
      ]),
    ).to.deep.equal([['Degraded', 'ContainerNotCreated']]);
    const totalOf = async (phase: 'Degraded' | 'Scaling'): Promise<number> =>
      (await listPools({ supervisor })(alice, { all: false, phase }, { limit: 10, offset: 0 }))
        .total;
    expect([await totalOf('Degraded'), await totalOf('Scaling')]).to.deep.equal([1, 0]);
  });

  it('refuses claims with the cause and the remedy', async () => {
    const {
      driver,
      ids: [one = ''],
      refused,
      hindered,
    } = await starting();
    const before = await refused();
    expect(before.detail).to.not.have.property('problem');
    expect(before.retryAfter).to.equal(1);

    driver.hinder(one, 'ImageUnavailable', PULL);
    await eventually(() => hindered(one), 'its image can not be had');
    const { code, message, detail, retryAfter } = await refused();
    expect([code, message, retryAfter]).to.deep.equal([
      'POOL_EXHAUSTED',
      'no idle pods available in pool',
      5,
    ]);
    expect(detail).to.include({ problem: PULL, starting: 2 });
    expect(detail?.['hint']).to.contain('overrides.image').and.contain('overrides.imagePullSecret');
  });

  it('refuses claims with the error of the last start', async () => {
    const {
      driver,
      supervisor,
      pool,
      ids: [one = ''],
      refused,
    } = await starting();
    driver.end(one, 7);
    await eventually(
      () => supervisor.pools.whole(pool.uid)?.context.breaker.failures === 1,
      'a start failed',
    );

    const { detail } = await refused();
    expect(detail?.['problem']).to.be.a('string').that.is.not.empty;
    expect(detail?.['hint']).to.contain('fix the cause');
  });
});
