import { expect } from 'chai';
import { v7 } from 'uuid';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { Takeover } from '../../src/actors/sandbox/takeover.ts';
import type { PoolRecord } from '../../src/model/pools/pool.ts';
import { aPool } from '../support/builders/a-pool.ts';
import { aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { FakeSandboxDriver } from '../support/fakes/fake-sandbox-driver.ts';
import { aDefinition, anOrder } from '../support/builders/instance-orders.ts';
import { Life, SharedRecords } from '../support/fakes/shared-records.ts';
import {
  aReplica,
  sharedStores,
  type SharedReplica,
} from '../support/harness/shared-supervisors.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const idleIn = ({ supervisor }: SharedReplica, uid: string): number | undefined =>
  supervisor.pools.get(uid)?.counts.idle;

const forEver = (): Promise<never> => new Promise(() => undefined);

/** Lets what is under way go on for a while. */
const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++)
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
};

describe('a replica that takes over during a refill', () => {
  it('fills the pool at once, without a failed start', async () => {
    const stores = await sharedStores({ pool: { replicas: 20 } });
    const shared = aCoordination(stores.clock);
    const [one, two] = [await aReplica(stores, shared), await aReplica(stores, shared)];
    const { uid } = stores.pool;
    stores.truth.betweenWrites = forEver;
    one.lead();
    await eventually(
      () => two.supervisor.pools.get(uid)?.counts.starting === 20,
      'records without a process',
    );
    one.die();
    stores.truth.betweenWrites = undefined;

    two.lead();
    await eventually(() => idleIn(two, uid) === 20, 'the pool is full, though no time has passed');

    const { counts, phase } = two.supervisor.pools.get(uid) ?? {};
    expect(counts).to.include({ starting: 0, retiring: 0, failed: 0 });
    expect(phase).to.equal('Ready');
    expect(two.supervisor.pools.whole(uid)?.context.breaker).to.deep.equal(stores.pool.breaker);
    expect(await stores.truth.records.all()).to.have.length(20);
  });

  it('retires a record without a process, even if it first sees the record as leader', async () => {
    const stores = await sharedStores({ pool: { replicas: 1 } });
    const one = await aReplica(stores, aCoordination(stores.clock));
    one.lead();
    await eventually(() => idleIn(one, stores.pool.uid) === 1, 'the pool is full');
    const launches = (): number =>
      stores.truth.calls.filter((call) => call.startsWith('launch')).length;

    // What the one that led before had sent lands late.
    stores.truth.betweenWrites = forEver;
    const { definition, record } = anOrder(aDefinition(), v7());
    const late = { definition, record: { ...record, poolUid: stores.pool.uid } };
    void stores.truth.launch(late, () => true);
    await eventually(
      () => stores.truth.calls.includes(`retire ${late.record.id}`),
      'it is retired',
    );
    await eventually(() => one.supervisor.sandbox(late.record.id) === undefined, 'and is no more');

    expect(one.supervisor.pools.get(stores.pool.uid)?.counts).to.include({ idle: 1, starting: 0 });
    expect(launches(), 'launches').to.equal(2);
  });

  it('does not retire its own launches', async () => {
    const stores = await sharedStores({ pool: { replicas: 3 } });
    const one = await aReplica(stores, aCoordination(stores.clock));
    stores.truth.betweenWrites = forEver;
    one.lead();
    await eventually(
      () => one.supervisor.pools.get(stores.pool.uid)?.counts.starting === 3,
      'launches are under way',
    );
    await stores.truth.settled();

    expect(stores.truth.calls.filter((call) => !call.startsWith('launch'))).to.deep.equal([]);
  });
});

describe('a daemon that starts after a crash during a refill', () => {
  it('fills the pool at once, without a failed start', async () => {
    const driver = new FakeSandboxDriver();
    const uid = v7();
    for (let n = 0; n < 5; n++) {
      const { definition, record } = anOrder();
      await driver.records.launchOrder({ ...record, poolUid: uid }, definition);
    }

    const { supervisor, pool } = await aSupervisor({ driver, pool: { uid, replicas: 5 } });
    await eventually(
      () => supervisor.pools.get(uid)?.counts.idle === 5 && supervisor.actors.size === 5,
      'the pool is full, and has nothing else',
    );

    expect(supervisor.pools.whole(uid)?.context.breaker).to.deep.equal(pool.breaker);
  });
});

describe('a replica that takes over while its pool mirror lags', () => {
  const behind = async (pool: Partial<PoolRecord>) => {
    const stores = await sharedStores({ pool });
    const shared = aCoordination(stores.clock);
    const poolsOfTwo = new SharedRecords(stores.pools, new Life());
    const [one, two] = [
      await aReplica(stores, shared),
      await aReplica({ ...stores, pools: poolsOfTwo }, shared),
    ];
    one.lead();
    const retired = (): readonly string[] =>
      stores.truth.calls.filter((call) => call.startsWith('retire'));
    return { ...stores, poolsOfTwo, one, two, retired };
  };

  it('keeps the instances of a pool that it has not seen yet', async () => {
    const { pools, poolsOfTwo, one, two, retired } = await behind({ replicas: 0 });
    poolsOfTwo.lag();
    const fresh = await pools.create(aPool({ name: 'fresh', replicas: 5 }));
    await eventually(() => idleIn(one, fresh.uid) === 5, 'the pool is full');

    one.die();
    two.lead();
    await eventually(() => idleIn(two, fresh.uid) === 5, 'it knows the pool');

    expect(retired()).to.deep.equal([]);
  });

  it('launches nothing for an outdated size', async () => {
    const { pools, pool, truth, poolsOfTwo, one, two } = await behind({ replicas: 20 });
    await eventually(() => idleIn(one, pool.uid) === 20, 'the pool is full');
    poolsOfTwo.lag();
    await one.supervisor.pools.change(pool.uid, (record) => ({ ...record, replicas: 2 }));
    await eventually(() => idleIn(one, pool.uid) === 2, 'it is smaller');
    const launches = (): number => truth.calls.filter((call) => call.startsWith('launch')).length;
    const before = launches();

    one.die();
    two.lead();
    await eventually(
      () => two.supervisor.pools.get(pool.uid)?.record.replicas === 2,
      'it knows the size',
    );
    await eventually(() => two.supervisor.shards.length > 0, 'it leads');

    expect(launches() - before).to.equal(0);
    expect((await pools.list())[0]?.replicas).to.equal(2);
  });

  it('does not lead until the mirror has caught up', async () => {
    const { pool, clock, poolsOfTwo, one, two } = await behind({ replicas: 1 });
    await eventually(() => idleIn(one, pool.uid) === 1, 'the pool is full');
    poolsOfTwo.failures.caughtUp = new Error('behind');

    one.die();
    two.lead();
    for (let n = 0; n < 5; n++) {
      clock.advance(1_000);
      await turns();
    }
    expect(two.supervisor.shards).to.deep.equal([]);

    poolsOfTwo.failures.caughtUp = undefined;
    clock.advance(1_000);
    await eventually(() => two.supervisor.shards.length > 0, 'it leads');
  });

  it('does not lead until its participants have caught up', async () => {
    const stores = await sharedStores({ pool: { replicas: 1 } });
    let failure: Error | undefined = new Error('behind');
    const participant = {
      onShardAcquired: () => undefined,
      onShardReleased: () => undefined,
      drained: async () => undefined,
      caughtUp: async () => {
        if (failure) throw failure;
      },
    };
    const one = await aReplica(stores, aCoordination(stores.clock), { participant });
    one.lead();
    await turns();
    expect(one.supervisor.shards).to.deep.equal([]);

    failure = undefined;
    stores.clock.advance(1_000);
    await eventually(() => one.supervisor.shards.length > 0, 'it leads');
  });

  it('checks for a pool in the store before it retires instances of an unknown pool', async () => {
    const { pools, poolsOfTwo, one, two, retired } = await behind({ replicas: 0 });
    poolsOfTwo.lag();
    poolsOfTwo.failures.blind = true; // it is told nothing, and thinks that it has heard all
    const fresh = await pools.create(aPool({ name: 'fresh', replicas: 5 }));
    await eventually(() => idleIn(one, fresh.uid) === 5, 'the pool is full');

    one.die();
    two.lead();
    await eventually(() => idleIn(two, fresh.uid) === 5, 'it found the pool');

    expect(retired()).to.deep.equal([]);
    expect(poolsOfTwo.reads, 'reads of the pool').to.deep.equal([`${fresh.owner.namespace}/fresh`]);
  });

  it('retires nothing of an existing pool that was reported as deleted', async () => {
    const { pool, clock, one, retired } = await behind({ replicas: 3 });
    await eventually(() => idleIn(one, pool.uid) === 3, 'the pool is full');

    one.supervisor.pools.send(pool.uid, { type: 'REMOVED' });
    for (let n = 0; n < 5; n++) {
      clock.advance(1_000);
      await turns();
    }

    expect(retired()).to.deep.equal([]);
  });

  it('retires nothing while the store is unreachable, and asks less and less often', async () => {
    const { pools, pool, clock, poolsOfTwo, one, two, retired } = await behind({ replicas: 3 });
    await eventually(() => idleIn(one, pool.uid) === 3, 'the pool is full');
    one.die();
    await pools.remove((await pools.list())[0] ?? expect.fail('no pool'));
    poolsOfTwo.failures.get = new Error('out of reach');

    two.lead();
    for (let second = 0; second < 60; second++) {
      clock.advance(1_000);
      await turns();
    }
    expect(retired()).to.deep.equal([]);
    expect(poolsOfTwo.reads.length, 'reads in a minute').to.be.within(4, 8);

    poolsOfTwo.failures.get = undefined;
    clock.advance(30_000);
    await eventually(() => retired().length === 3, 'what was left behind is retired');
  });
});

describe('searches for pools of leftover instances', () => {
  it('continue with the waiting ones, even if the next ones have no instances left', async () => {
    const left = new Set(Array.from({ length: 40 }, (_, n) => `pool-${n}`));
    const ended: string[] = [];
    const looks: (() => void)[] = [];
    const takeover = new Takeover({
      clock: new TestClock(),
      log: quietLog,
      mirrors: [],
      leads: () => true,
      tell: () => undefined,
      retire: () => true,
      lookAt: () => undefined,
      retirements: {
        end: (uid) => {
          ended.push(uid);
        },
      },
      pools: {
        get: () => undefined,
        lookUp: () =>
          new Promise((resolve) => {
            looks.push(() => {
              resolve(undefined);
            });
          }),
      },
      index: {
        poolUids: () => [...left],
        startingIn: () => [],
        dismissable: (uid) => (left.has(uid) ? [`of ${uid}`] : []),
        placementOf: () => ({ owner: { namespace: 'default' }, poolName: 'p' }) as never,
      },
    });
    for (const uid of left) takeover.retirePoolless(uid);
    const goneMeanwhile = [...left].slice(8, 32);
    for (const uid of goneMeanwhile) left.delete(uid);
    for (let round = 0; round < 40; round++) {
      for (const answer of looks.splice(0)) answer();
      await turns();
    }

    expect(ended).to.have.members([...left]);
  });
});
