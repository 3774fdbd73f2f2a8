import { expect } from 'chai';
import { setImmediate as turnOver } from 'node:timers/promises';
import { RetirementLimiter } from '../../src/actors/sandbox/retirement-limiter.ts';
import type { Supervisor } from '../../src/actors/sandbox/supervisor.ts';
import { aPool } from '../support/builders/a-pool.ts';
import { aSupervisor, alice } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { RefusingDriver } from '../support/fakes/refusing-driver.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

describe('background retirements', () => {
  const idleIn = (supervisor: Supervisor, uid: string): number | undefined =>
    supervisor.pools.get(uid)?.counts.idle;

  /** A pool of 100, all idle. */
  const aFullPool = async () => {
    const given = await aSupervisor({ pool: { replicas: 100 } });
    await eventually(() => idleIn(given.supervisor, given.pool.uid) === 100, 'filled');
    const told = (call: 'retire' | 'release'): number =>
      given.driver.calls.filter((each) => each.startsWith(`${call} `)).length;
    const scale = (uid: string, replicas: number) =>
      given.supervisor.pools.change(uid, (record) => ({ ...record, replicas }));
    return { ...given, told, scale };
  };

  it('retire the surplus of a large pool a few at a time, each instance once', async () => {
    const { supervisor, pool, driver, told, scale } = await aFullPool();
    driver.hold('retire');

    await scale(pool.uid, 10);
    await driver.settled();

    expect(told('retire')).to.be.within(1, 32);
    expect(idleIn(supervisor, pool.uid)).to.equal(100 - told('retire'));
    driver.letGo('retire');
    await eventually(() => supervisor.actors.size === 10, 'ten left');
    expect(told('retire')).to.equal(90);
    expect(driver.calls.filter((call) => call.startsWith('read '))).to.deep.equal([]);
  });

  it("let another pool's surplus through in between", async () => {
    const { supervisor, pool, pools, driver, scale } = await aFullPool();
    const other = await pools.create(aPool({ name: 'other', replicas: 20 }));
    await eventually(() => idleIn(supervisor, other.uid) === 20, 'filled');
    const others = new Set(
      supervisor.index.dismissable(other.uid, 'r1', 20).map((id) => `retire ${id}`),
    );
    driver.hold('retire');

    await scale(pool.uid, 0);
    await scale(other.uid, 0);
    driver.letGo('retire');
    await eventually(() => supervisor.actors.size === 0, 'both are empty');

    const retired = driver.calls.filter((call) => call.startsWith('retire '));
    expect(others.size).to.equal(20);
    expect(retired.findLastIndex((call) => others.has(call))).to.be.below(90);
  });

  it('retire the instances of a deleted pool a few at a time', async () => {
    const { supervisor, pools, driver, told } = await aFullPool();
    driver.hold('retire');

    for (const record of pools.records.values()) await pools.remove(record);
    await eventually(() => told('retire') > 0, 'the first are retired');

    expect(told('retire')).to.be.within(1, 32);
    driver.letGo('retire');
    await eventually(() => supervisor.actors.size === 0, 'nothing is left');
    expect(told('retire')).to.equal(100);
  });

  it('serve one pool for each free slot, and the next one if that pool needs none', async () => {
    const goneOn: string[] = [];
    const endings = new RetirementLimiter({
      clock: new TestClock(),
      goOn: (uid) => {
        goneOn.push(uid);
      },
      goOnAt: () => undefined,
      namespaceOf: () => 'team',
    });
    for (let n = 0; n < 20; n += 1)
      endings.end(
        `pool-${n}`,
        (uid, most) => Array.from({ length: most }, (_, at) => `${uid}/${at}`),
        () => true,
      );
    expect(goneOn).to.deep.equal([]);

    endings.moved('pool-0', 'pool-0/0', new Set(['endDurable']));

    expect(goneOn, 'in a turn of its own').to.deep.equal([]);
    await turnOver();
    expect(goneOn).to.deep.equal(['pool-3']);
    await turnOver();
    expect(goneOn).to.deep.equal(['pool-3', 'pool-4']);
  });

  it('return once to a pool that gave way to others without room', async () => {
    const goneOn: string[] = [];
    const ending = new Map<string, string[]>();
    const endings = new RetirementLimiter({
      clock: new TestClock(),
      goOn: (uid) => {
        goneOn.push(uid);
        // Endlessly, nothing else would run.
        if (goneOn.length < 100) endMore(uid);
      },
      goOnAt: () => undefined,
      namespaceOf: (uid) => uid.slice(0, 1),
    });
    let made = 0;
    const endMore = (uid: string): void => {
      endings.end(
        uid,
        (_, most) => Array.from({ length: most }, () => `${uid}/${(made += 1)}`),
        (id) => ending.set(uid, [...(ending.get(uid) ?? []), id]).size > 0,
      );
    };
    const endOne = (uid: string): void => {
      const id = ending.get(uid)?.shift() ?? '';
      endings.moved(uid, id, new Set(['endDurable']));
    };
    for (const uid of ['a0', 'a1', 'a2', 'b0', 'a3', 'a4']) endMore(uid);
    for (let n = 0; n < 7; n += 1) endOne('b0');
    goneOn.length = 0;

    // Room for one of `a`, whose others wait on, and for more of `b0`, which is served.
    endOne('a0');
    for (let turn = 0; turn < 10; turn += 1) await turnOver();

    expect(goneOn).to.deep.equal(['a3', 'b0']);
  });

  it('return to a pool once all its failed retirements succeed', () => {
    const clock = new TestClock();
    const goneOn: string[] = [];
    const retirements = new RetirementLimiter({
      clock,
      goOn: (uid) => {
        goneOn.push(uid);
      },
      goOnAt: () => undefined,
      namespaceOf: () => undefined,
    });
    const ids = Array.from({ length: 20 }, (_, n) => `instance-${n}`);
    const ended: string[] = [];
    const endMore = (): void => {
      retirements.end(
        'pool',
        (_, most) => ids.filter((id) => !ended.includes(id)).slice(0, most),
        (id) => ended.push(id) > 0,
      );
    };
    for (let round = 0; round < 30 && ended.length < 8; round++) {
      endMore();
      for (const id of ended) retirements.moved('pool', id, new Set(['endFailed']));
      clock.advance(60_000);
    }
    expect(ended).to.have.lengthOf(8);
    goneOn.length = 0;

    for (const id of ended) retirements.moved('pool', id, new Set(['endDurable']));

    expect(goneOn).to.include('pool');
    endMore();
    expect(ended).to.have.lengthOf.above(8);
  });

  it('end the running sandboxes of a force-deleted pool a few at a time', async () => {
    const { supervisor, pool, pools, claim, driver, told } = await aFullPool();
    for (let n = 0; n < 60; n += 1) await claim(alice, { poolName: 'default' });
    driver.hold('release');

    await supervisor.pools.change(pool.uid, (record) => ({ ...record, deleting: 'force' }));
    await eventually(() => idleIn(supervisor, pool.uid) === 0, 'the idle ones are retired');

    expect(told('release')).to.be.within(1, 32);
    driver.letGo('release');
    await eventually(() => pools.records.size === 0 && supervisor.actors.size === 0, 'gone');
    expect(told('release')).to.equal(60);
  });

  describe('in a namespace that refuses all of them', () => {
    /** Two full pools of two tenants; those of the first refuse to end. */
    const aRefusingTenant = async () => {
      const driver = new RefusingDriver();
      const world = await aSupervisor({ pool: { replicas: 40 }, driver });
      const { supervisor, pools, pool, clock } = world;
      const owner = { ...ALICE, namespace: 'elsewhere' };
      const other = await pools.create(aPool({ name: 'other', owner, replicas: 40 }));
      const areFull = () => [pool, other].every(({ uid }) => idleIn(supervisor, uid) === 40);
      await eventually(areFull, 'both are full');
      driver.refused.set(pool.owner.namespace, 'deletes');
      const scale = (uid: string, replicas: number) =>
        supervisor.pools.change(uid, (record) => ({ ...record, replicas }));
      /** Lets so much time pass, in which everything is answered. */
      const pass = async (ms: number) => {
        for (let at = 0; at < ms; at += 500) {
          clock.advance(500);
          await driver.settled();
          for (let turn = 0; turn < 20; turn++)
            await new Promise<void>((resolve) => {
              setImmediate(resolve);
            });
        }
      };
      return { ...world, driver, other, scale, pass };
    };

    it('do not delay other tenants', async () => {
      const { supervisor, pool, other, scale } = await aRefusingTenant();
      await scale(pool.uid, 0);
      await scale(other.uid, 0);

      // and no clock was moved
      await eventually(() => idleIn(supervisor, other.uid) === 0, 'the other pool is trimmed');
    });

    it('are retried rarely, and succeed once allowed', async () => {
      const { supervisor, pool, scale, pass, driver } = await aRefusingTenant();
      await scale(pool.uid, 0);
      await pass(600_000);
      expect(driver.refusals).to.be.within(24, 24 + 20);

      expect(idleIn(supervisor, pool.uid)).to.be.within(39, 40);
      driver.refused.clear();
      await pass(70_000);
      expect(supervisor.pools.get(pool.uid)?.counts).to.deep.include({ idle: 0, retiring: 0 });
    });

    it('leave the remaining instances to claims', async () => {
      const { pool, scale, pass, claim } = await aRefusingTenant();
      await scale(pool.uid, 0);
      await pass(5_000);

      for (let n = 0; n < 39; n++) await claim(alice, { poolName: 'default' });
    });
  });
});
