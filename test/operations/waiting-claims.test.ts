import { expect } from 'chai';
import { invalidApiKey, Refusal } from '../../src/model/refusals.ts';
import { MOST_WAITING_OF_TENANT } from '../../src/actors/claim/waiting-claim-limit.ts';
import { MAX_WAITING_OF_POOL } from '../../src/contracts/coordination/claims.ts';
import { OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import { aPool } from '../support/builders/a-pool.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';

const codeOf = (error: unknown): string => (error instanceof Refusal ? error.code : String(error));

describe('a waiting claim', () => {
  const anEmptyPool = async (options: { readonly sandboxLimit?: number } = {}) => {
    const world = await aSupervisor({ pool: { replicas: 0 }, ...options });
    const { supervisor, pool, claim } = world;
    const answered: string[] = [];
    /** One that waits, by a name. */
    const wait = async (name: string, waitMs = 60_000, signal?: AbortSignal) => {
      const before = await world.coordination.waiting(pool);
      const claimed = claim(alice, { poolName: 'default', waitMs }, signal).then((view) => {
        answered.push(name);
        return view;
      });
      claimed.catch(() => undefined);
      await untilWaiting(before + 1);
      return { claimed };
    };
    let waits = 0;
    const untilWaiting = (count: number) =>
      eventually(() => {
        void world.coordination.waiting(pool).then((now) => {
          waits = now;
        });
        return waits === count;
      }, `${count} wait`);
    const grow = async (replicas: number) => {
      await supervisor.pools.change(pool.uid, (record) => ({ ...record, replicas }));
    };
    return { ...world, answered, wait, untilWaiting, grow };
  };

  it('gets an idle instance at once', async () => {
    const { claim, supervisor, pool, grow } = await anEmptyPool();
    await grow(1);
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'it is idle');

    expect(await claim(alice, { poolName: 'default', waitMs: 60_000 })).to.have.property(
      'status',
      'Running',
    );
  });

  it('gets the next instance, first come first served', async () => {
    const { wait, grow, answered } = await anEmptyPool();
    const waiting = [await wait('a'), await wait('b'), await wait('c')];
    for (const [n, { claimed }] of waiting.entries()) {
      await grow(n + 1);
      await claimed;
    }

    expect(answered).to.deep.equal(['a', 'b', 'c']);
    expect(
      new Set(await Promise.all(waiting.map(async ({ claimed }) => (await claimed).id))).size,
    ).to.equal(3);
  });

  it('keeps its position during an uncached read', async () => {
    const { driver, wait, grow } = await anEmptyPool();
    let looks = 0;
    driver.idle = () => {
      looks += 1;
      return new Promise(() => undefined);
    };
    const { claimed } = await wait('a');
    await grow(1);

    expect(await claimed).to.have.property('status', 'Running');
    expect(looks).to.equal(1);
  });

  it('gets an instance that the mirror did not show', async () => {
    const { driver, supervisor, pool, claim, grow } = await anEmptyPool();
    driver.startsByItself = false;
    await grow(1);
    await eventually(() => driver.running().length === 1, 'it starts');
    const [id] = driver.running();
    driver.idle = async () => {
      const { record } = await driver.read(id ?? '');
      return record ? [{ id: record.id, record, vitals: { kind: 'available', startedAt: 1 } }] : [];
    };

    expect(await claim(alice, { poolName: 'default', waitMs: 60_000 })).to.have.property('id', id);
    expect(supervisor.pools.get(pool.uid)?.counts).to.deep.include({ starting: 0, running: 1 });
  });

  it('keeps waiting if the store is unreachable', async () => {
    const { driver, wait, grow } = await anEmptyPool();
    driver.idle = () => Promise.reject(new Error('the API server refuses'));
    const { claimed } = await wait('a');
    await grow(1);

    expect(await claimed).to.have.property('status', 'Running');
  });

  it('gets one instance each if many become idle at once', async () => {
    const { wait, grow, untilWaiting, supervisor, pool } = await anEmptyPool();
    const waiting = [];
    for (let n = 0; n < 20; n++) waiting.push(await wait(String(n)));
    await grow(30);

    expect(
      new Set(await Promise.all(waiting.map(async ({ claimed }) => (await claimed).id))).size,
    ).to.equal(20);
    await untilWaiting(0);
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 10, 'the others stay');
  });

  it('is not overtaken by a claim that does not wait', async () => {
    const { wait, grow, claim, driver, supervisor, pool } = await anEmptyPool();
    const { claimed } = await wait('a');
    driver.hold('claim');
    await grow(1);
    await eventually(
      () => driver.calls.some((call) => call.startsWith('claim')),
      'its claim is under way',
    );
    const late = rejection(claim(alice, { poolName: 'default' }));
    driver.letGo('claim');

    expect(codeOf(await late)).to.equal('POOL_EXHAUSTED');
    expect((await claimed).status).to.equal('Running');
    expect(supervisor.pools.get(pool.uid)?.counts.running).to.equal(1);
  });

  it('is refused only after it has left the queue', async () => {
    const { coordination, claim, clock, pool } = await anEmptyPool();
    const { leaveWaiting } = coordination;
    let leave: (() => void) | undefined;
    coordination.leaveWaiting = async (place) => {
      await new Promise<void>((resolve) => {
        leave = resolve;
      });
      await leaveWaiting.call(coordination, place);
    };
    let isRefused = false;
    const refused = rejection(claim(alice, { poolName: 'default', waitMs: 1_000 })).finally(() => {
      isRefused = true;
    });
    await eventually(() => {
      clock.advance(1_000);
      return leave !== undefined;
    }, 'its time is over');
    for (let turn = 0; turn < 50; turn++)
      await new Promise<void>((resolve) => {
        setImmediate(resolve);
      });
    expect([isRefused, await coordination.waiting(pool)]).to.deep.equal([false, 1]);
    leave?.();

    expect(codeOf(await refused)).to.equal('POOL_EXHAUSTED');
    expect(await coordination.waiting(pool)).to.equal(0);
  });

  describe('leaves to a claim that does not wait', () => {
    /** Two are idle, and one claim waits, on another replica. */
    const twoIdle = async () => {
      const world = await anEmptyPool();
      const { grow, supervisor, pool, coordination } = world;
      await grow(2);
      await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 2, 'they are idle');
      await coordination.joinWaiting(pool);
      return world;
    };

    it('an instance that another claim reserved but did not get', async () => {
      const { coordination, claim, supervisor, pool } = await twoIdle();
      const { admitClaim } = coordination;
      let refuse = (): void => undefined;
      const asks: string[] = [];
      coordination.admitClaim = async (entry) => {
        asks.push(entry.instance);
        if (asks.length > 1) return await admitClaim.call(coordination, entry);
        await new Promise<void>((resolve) => {
          refuse = resolve;
        });
        return 'full';
      };
      const first = rejection(claim(alice, { poolName: 'default' }));
      await eventually(() => asks.length === 1, 'the first is about to be refused');
      const second = claim(alice, { poolName: 'default' });
      await eventually(() => asks.length === 2, 'the second has asked');
      refuse();

      expect(codeOf(await first)).to.equal('QUOTA_EXCEEDED');
      expect(await second).to.have.property('status', 'Running');
      expect(supervisor.pools.get(pool.uid)?.counts.running).to.equal(1);
    });

    it('an instance that the mirror did not show', async () => {
      const { driver, supervisor, pool, claim, grow } = await twoIdle();
      driver.startsByItself = false;
      await grow(1);
      await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'one is idle');
      await grow(2);
      await eventually(
        () => supervisor.pools.get(pool.uid)?.counts.starting === 1,
        'and one starts',
      );
      const id =
        driver.running().find((each) => supervisor.sandbox(each)?.state === 'starting') ?? '';
      const asked: number[] = [];
      driver.idle = async (_pool: string, _namespace: string, atLeast: number) => {
        asked.push(atLeast);
        const { record } = await driver.read(id);
        return record
          ? [{ id: record.id, record, vitals: { kind: 'available', startedAt: 1 } }]
          : [];
      };

      expect(await claim(alice, { poolName: 'default' })).to.have.property('status', 'Running');
      expect(asked).to.deep.equal([2]);
    });
  });

  it('is refused if its pool is deleted while it tries an instance', async () => {
    const { wait, grow, driver, pools } = await anEmptyPool();
    const { claimed } = await wait('a');
    driver.hold('claim');
    await grow(1);
    await eventually(
      () => driver.calls.some((call) => call.startsWith('claim')),
      'its claim is under way',
    );
    for (const record of pools.records.values()) await pools.remove(record);
    driver.end(driver.running()[0]!); // the only one
    driver.letGo('claim');

    expect(codeOf(await rejection(claimed))).to.equal('CONFLICT');
  });

  it("is refused with the pool's counts when its time is over", async () => {
    const { wait, clock, untilWaiting } = await anEmptyPool();
    const { claimed } = await wait('a', 3_000);
    const refused = rejection(claimed);
    clock.advance(2_999);
    await untilWaiting(1);
    clock.advance(1);

    expect(await refused)
      .to.be.instanceOf(Refusal)
      .with.property('code', 'POOL_EXHAUSTED');
    expect(((await refused) as Refusal).detail).to.include({ idle: 0, running: 0, starting: 0 });
    await untilWaiting(0);
  });

  it('leaves its position to the next claim when its client disconnects', async () => {
    const { wait, grow, answered, untilWaiting } = await anEmptyPool();
    const client = new AbortController();
    const { claimed: left } = await wait('a', 60_000, client.signal);
    const { claimed } = await wait('b');
    client.abort();
    await rejection(left);
    await untilWaiting(1);
    await grow(1);
    await claimed;

    expect(answered).to.deep.equal(['b']);
  });

  it('claims nothing for a client that has disconnected', async () => {
    const { wait, grow, supervisor, pool } = await anEmptyPool();
    const client = new AbortController();
    const { claimed } = await wait('a', 60_000, client.signal);
    supervisor.idle.lines.turnedIdle = (poolUid) => {
      client.abort();
      supervisor.idle.lines.offer(poolUid);
    };
    await grow(1);
    await rejection(claimed);

    await eventually(() => supervisor.index.idleIn(pool.uid) === 1, 'it is idle');
    expect(supervisor.pools.get(pool.uid)?.counts.running).to.equal(0);
  });

  it('is refused when its signal aborts, in any state, and leaves instance and quota to others', async () => {
    const { wait, grow, supervisor, pool, coordination, claim, untilWaiting } = await anEmptyPool({
      sandboxLimit: 1,
    });
    const [standing, admitted] = [new AbortController(), new AbortController()];
    const first = await wait('a', 60_000, standing.signal);
    standing.abort(invalidApiKey());
    expect(codeOf(await rejection(first.claimed))).to.equal('INVALID_API_KEY');

    const second = await wait('b', 60_000, admitted.signal);
    const { admitClaim } = coordination;
    coordination.admitClaim = async (admission) => {
      const answer = await admitClaim.call(coordination, admission);
      admitted.abort(invalidApiKey());
      return answer;
    };
    await grow(1);
    expect(codeOf(await rejection(second.claimed))).to.equal('INVALID_API_KEY');

    await untilWaiting(0);
    expect(supervisor.pools.get(pool.uid)?.counts).to.include({ idle: 1, running: 0 });
    coordination.admitClaim = admitClaim;
    expect(await claim(alice, { poolName: 'default' })).to.have.property('status', 'Running');
  });

  it('is refused with 409 when its pool is deleted', async () => {
    const { wait, supervisor, pool, untilWaiting } = await anEmptyPool();
    const { claimed } = await wait('a');
    const refused = rejection(claimed);
    await supervisor.pools.change(pool.uid, (record) => ({ ...record, deleting: 'keep-running' }));

    expect(codeOf(await refused)).to.equal('CONFLICT');
    await untilWaiting(0);
  });

  it('is refused as unavailable when the daemon stops, like later waiting claims', async () => {
    const { wait, supervisor, claim } = await anEmptyPool();
    const { claimed } = await wait('a');
    const refused = rejection(claimed);
    supervisor.idle.lines.stop();

    expect(codeOf(await refused)).to.equal('UNAVAILABLE');
    expect(codeOf(await rejection(claim(alice, { poolName: 'default', waitMs: 60_000 })))).to.equal(
      'UNAVAILABLE',
    );
    expect(codeOf(await rejection(claim(alice, { poolName: 'default' })))).to.equal(
      'POOL_EXHAUSTED',
    );
  });

  it('is refused for the quota at its turn, and leaves the instance to the next owner', async () => {
    const { wait, grow, supervisor, pool, untilWaiting } = await anEmptyPool({ sandboxLimit: 1 });
    const [first, second] = [await wait('a'), await wait('b')];
    const refused = rejection(second.claimed);
    await grow(2);
    await first.claimed;

    expect(codeOf(await refused)).to.equal('QUOTA_EXCEEDED');
    await untilWaiting(0);
    await eventually(() => supervisor.index.idleIn(pool.uid) === 1, 'the other one is idle');
  });

  it('tries other instances if its instance is lost or its claim has an unknown outcome', async () => {
    const { wait, grow, driver, untilWaiting, answered, clock } = await anEmptyPool();
    const { claimed } = await wait('a');
    driver.records.failNext('claim', 'conflict');
    driver.failNext('claim', new OutcomeUnknown('cut'));
    await grow(1);
    await eventually(() => {
      clock.advance(20);
      return answered.length === 1;
    }, 'it is answered'); // a repetition comes after a pause

    expect((await claimed).status).to.equal('Running');
    await untilWaiting(0);
  });

  it('is refused if too many claims wait, for the pool or of the tenant', async () => {
    const { claim, pools, untilWaiting, clock } = await anEmptyPool();
    const refusals: Promise<unknown>[] = [];
    const fill = (poolName: string, count: number) => {
      for (let n = 0; n < count; n++)
        refusals.push(rejection(claim(alice, { poolName, waitMs: 1_000 })));
    };
    fill('default', MAX_WAITING_OF_POOL);
    await untilWaiting(MAX_WAITING_OF_POOL);
    expect(codeOf(await rejection(claim(alice, { poolName: 'default', waitMs: 1_000 })))).to.equal(
      'TOO_MANY_WAITING',
    );
    for (const name of ['second', 'third']) await pools.create(aPool({ name, replicas: 0 }));

    fill('second', MOST_WAITING_OF_TENANT - MAX_WAITING_OF_POOL);
    const refused = await rejection(claim(alice, { poolName: 'third', waitMs: 1_000 }));
    expect([codeOf(refused), String(refused)]).to.deep.equal([
      'TOO_MANY_WAITING',
      'Refusal: 512 claims wait for your pools, which is the maximum; try again later',
    ]);

    await eventually(() => {
      clock.advance(1_000);
      return clock.waiting < 100;
    }, 'their time is over');
    expect(new Set((await Promise.all(refusals)).map(codeOf))).to.deep.equal(
      new Set(['POOL_EXHAUSTED']),
    );
  });
});
