import { expect } from 'chai';
import type { Supervisor } from '../../src/actors/supervisor.ts';
import { aPool, aSupervisor, alice, eventually } from '../support/a-supervisor.ts';

describe('ends that nobody waits for', () => {
  const idleIn = (supervisor: Supervisor, uid: string): number | undefined => supervisor.pools.get(uid)?.counts.idle;

  /** A pool of 100, all idle. */
  const aFullPool = async () => {
    const given = await aSupervisor({ pool: { replicas: 100 } });
    await eventually(() => idleIn(given.supervisor, given.pool.uid) === 100, 'filled');
    const told = (call: 'retire' | 'release'): number => given.driver.calls.filter((each) => each.startsWith(`${call} `)).length;
    const scale = (uid: string, replicas: number) => given.supervisor.pools.change(uid, (record) => ({ ...record, replicas }));
    return { ...given, told, scale };
  };

  it('retires the surplus of a large pool a few at a time, each of them once', async () => {
    const { supervisor, pool, driver, told, scale } = await aFullPool();
    driver.hold('retire');

    await scale(pool.uid, 10);
    await driver.settled();

    expect(told('retire')).to.be.within(1, 32);
    expect(idleIn(supervisor, pool.uid)).to.equal(100 - told('retire'));
    driver.letGo('retire');
    await eventually(() => supervisor.size === 10, 'ten left');
    expect(told('retire')).to.equal(90);
    expect(driver.calls.filter((call) => call.startsWith('read '))).to.deep.equal([]);
  });

  it('lets the surplus of another pool through in between', async () => {
    const { supervisor, pool, pools, driver, scale } = await aFullPool();
    const other = await pools.create(aPool({ name: 'other', replicas: 20 }));
    supervisor.pools.add(other);
    await eventually(() => idleIn(supervisor, other.uid) === 20, 'filled');
    const others = new Set(supervisor.index.dismissable(other.uid, 'r1', 20).map((id) => `retire ${id}`));
    driver.hold('retire');

    await scale(pool.uid, 0);
    await scale(other.uid, 0);
    driver.letGo('retire');
    await eventually(() => supervisor.size === 0, 'both are empty');

    const retired = driver.calls.filter((call) => call.startsWith('retire '));
    expect(others.size).to.equal(20);
    expect(retired.findLastIndex((call) => others.has(call))).to.be.below(90);
  });

  it('retires what is left of a pool that is no more a few at a time', async () => {
    const { supervisor, pool, driver, told } = await aFullPool();
    driver.hold('retire');

    supervisor.pools.send(pool.uid, { type: 'REMOVED' });
    await driver.settled();

    expect(told('retire')).to.be.within(1, 32);
    driver.letGo('retire');
    await eventually(() => supervisor.size === 0, 'nothing is left');
    expect(told('retire')).to.equal(100);
  });

  it('ends the running sandboxes of a pool that is deleted by force a few at a time', async () => {
    const { supervisor, pool, pools, claim, driver, told } = await aFullPool();
    for (let n = 0; n < 60; n += 1) await claim(alice, { poolName: 'default' });
    driver.hold('release');

    await supervisor.pools.change(pool.uid, (record) => ({ ...record, deleting: 'force' }));
    await eventually(() => idleIn(supervisor, pool.uid) === 0, 'the idle ones are retired');

    expect(told('release')).to.be.within(1, 32);
    driver.letGo('release');
    await eventually(() => pools.records.size === 0 && supervisor.size === 0, 'gone');
    expect(told('release')).to.equal(60);
  });
});
