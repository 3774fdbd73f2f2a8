import { expect } from 'chai';
import type { PoolEvent } from '../../src/machines/pool/events.ts';
import { aPool } from '../support/builders/a-pool.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';
import { Refusal } from '../../src/model/refusals.ts';

const codeOf = (error: unknown): string => (error instanceof Refusal ? error.code : String(error));

/** As a machine that throws at each event that says so. */
const poison = {
  get now(): never {
    throw new Error('poison');
  },
};

describe('a machine that throws at every LEAD', () => {
  /** A full pool whose actor throws whenever this replica begins to lead it; and another one. */
  const aPoisonedPool = async () => {
    const world = await aSupervisor({ pool: { replicas: 2 } });
    const { supervisor, pools, pool } = world;
    const other = await pools.create(aPool({ name: 'other', replicas: 1 }));
    const isFull = () =>
      supervisor.pools.get(pool.uid)?.counts.idle === 2 &&
      supervisor.pools.get(other.uid)?.counts.idle === 1;
    await eventually(isFull, 'both are full');
    const { actors } = supervisor.pools;
    const { send } = actors;
    let leads = 0;
    let isPoisoned = true;
    actors.send = (uid: string, event: PoolEvent): boolean => {
      const isPoison = isPoisoned && uid === pool.uid && event.type === 'LEAD';
      if (isPoison) leads += 1;
      return send.call(
        actors,
        uid,
        isPoison
          ? Object.assign(Object.create(poison) as PoolEvent, { type: 'LEAD' as const })
          : event,
      );
    };
    const leadAgain = () => {
      actors.send(pool.uid, { type: 'LEAD', now: world.clock.now() });
    };
    return {
      ...world,
      other,
      leadAgain,
      leads: () => leads,
      heal: () => {
        isPoisoned = false;
      },
    };
  };

  it('is recreated at most five times, then shown as broken', async () => {
    const { supervisor, pool, clock, leadAgain, leads } = await aPoisonedPool();
    leadAgain();
    expect([leads(), supervisor.pools.actors.rebuilds.broken]).to.deep.equal([1, []]);
    clock.advance(3_600_000);

    expect([leads(), supervisor.pools.actors.rebuilds.broken]).to.deep.equal([5, [pool.uid]]);
  });

  it('makes claims from its pool answer 503, and no others', async () => {
    const { claim, leadAgain } = await aPoisonedPool();
    leadAgain();

    expect(codeOf(await rejection(claim(alice, { poolName: 'default' })))).to.equal('UNAVAILABLE');
    expect(await claim(alice, { poolName: 'other' })).to.have.property('status', 'Running');
  });

  it('loses no instance, and continues after a manual restart once the fault is gone', async () => {
    const { supervisor, pool, clock, leadAgain, heal, claim, pools } = await aPoisonedPool();
    leadAgain();
    clock.advance(3_600_000);
    heal();
    // it is there
    const written = await pools.update({ ...pools.records.get(pool.uid)!, replicas: 3 });
    expect(supervisor.pools.get(pool.uid)).to.equal(undefined);
    expect(supervisor.pools.recordOf(pool.uid)?.replicas).to.equal(3);
    supervisor.pools.rebuild(written);

    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 3, 'it is led');
    expect(await claim(alice, { poolName: 'default' })).to.have.property('status', 'Running');
    expect(supervisor.pools.actors.rebuilds.broken).to.deep.equal([]);
  });

  it("ends with its pool, and so do the pool's remains", async () => {
    const { supervisor, pool, pools, clock, leadAgain } = await aPoisonedPool();
    leadAgain();
    clock.advance(3_600_000);
    await pools.remove(pools.records.get(pool.uid)!); // it is there

    await eventually(() => supervisor.actors.size === 1, 'its instances are gone');
    expect(supervisor.pools.actors.rebuilds.broken).to.deep.equal([]);
  });
});

describe('a sandbox whose machine throws at every fact', () => {
  it('is given up after five attempts, while others continue', async () => {
    const { supervisor, pool, driver, clock, claim } = await aSupervisor({ pool: { replicas: 2 } });
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 2, 'filled');
    const [id] = supervisor.index.list({ phase: 'Idle' }, 0, 1).ids as [string];
    for (let n = 0; n < 5; n++) {
      supervisor.send(id, {
        type: 'FACT',
        now: clock.now(),
        get fact(): never {
          throw new Error('poison');
        },
      });
      expect(supervisor.sandbox(id)).to.equal(undefined);
      clock.advance(n < 4 ? 2_000 : 3_600_000);
      if (n < 4) await eventually(() => supervisor.sandbox(id) !== undefined, 'made anew');
    }
    driver.becomeAvailable(id);
    await driver.settled();

    expect([supervisor.sandbox(id), supervisor.actors.rebuilds.broken]).to.deep.equal([
      undefined,
      [id],
    ]);
    expect(await claim(alice, { poolName: 'default' })).to.have.property('status', 'Running');
    expect(await supervisor.rebuild(id)).to.equal('rebuilt');
    expect(supervisor.sandbox(id)).not.to.equal(undefined);
    expect(supervisor.actors.rebuilds.broken).to.deep.equal([]);
  });
});
