import { expect } from 'chai';
import * as fc from 'fast-check';
import type { Admission, WaitingPlace } from '../../src/contracts/coordination/claims.ts';
import type { RequestOwner } from '../../src/contracts/coordination/requests.ts';
import { RedisClaims } from '../../src/redis/claims.ts';
import { keysOf } from '../../src/redis/keys.ts';
import { RedisLink } from '../../src/redis/redis-link.ts';
import { RedisRequests } from '../../src/redis/requests.ts';
import { aRedisCoordination, known } from '../support/harness/a-redis-coordination.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { onRedis } from '../support/harness/on-redis.ts';
import { FEW_BYTES } from '../support/fakes/a-coordination.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { rejection } from '../support/harness/rejection.ts';
import { runs } from '../support/harness/runs.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

const NAMES = ['r1', 'r2', 'r3'] as const;
const FAR = '9999999999999';

/** Without timers: they live, die and say so when a test says so. */
describe('waiting claims on several replicas', function () {
  const redis = onRedis();
  let link: RedisLink;
  let replicas: readonly [RedisClaims, RedisClaims, RedisClaims];
  let keys: ReturnType<typeof keysOf>;
  let pool: { readonly uid: string; readonly owner: typeof ALICE };
  let stop: () => Promise<void>;
  let rounds = 0;
  let born = 0;
  const dead = new Set<number>();

  beforeEach(async () => {
    const { settings } = redis();
    keys = keysOf(settings.prefix);
    link = new RedisLink({ metrics: silentMetrics, settings, log: quietLog, name: 'order' });
    await link.start();
    const shared = {
      link,
      keys,
      log: quietLog,
      requests: new RedisRequests({ link, keys, log: quietLog, bounds: FEW_BYTES }),
      quotas: {
        unknown: () => {
          throw new Error('usage is not known');
        },
      },
    };
    const [r1, r2, r3] = NAMES;
    replicas = [
      new RedisClaims({ ...shared, replica: r1 }),
      new RedisClaims({ ...shared, replica: r2 }),
      new RedisClaims({ ...shared, replica: r3 }),
    ];
    const usage = await aRedisCoordination(settings, { rebuildWaitMs: 0 });
    const knownAgain = () =>
      known(() =>
        usage.coordination.reserve(ALICE, 'sandboxes', { name: 'nothing', amount: 0, limit: 0 }),
      );
    await knownAgain();
    stop = async () => {
      link.stop();
      await usage.stop();
    };
    anew();
  });
  afterEach(() => stop());

  const anew = (): void => {
    pool = { uid: `pool-${++rounds}`, owner: ALICE };
    dead.clear();
  };
  /** No time goes by for who is alive. */
  const still = async (): Promise<void> => {
    const seen = keys.waitingSeen(pool);
    await redis().client.hset(
      seen,
      Object.fromEntries(NAMES.map((name, at) => [name, dead.has(at) ? '1' : FAR])),
    );
  };
  const join = (at: number): Promise<WaitingPlace> => replica(at).joinWaiting(pool);
  const replica = (at: number): RedisClaims => replicas[at] ?? replicas[0];
  const admit = async (at: number, place?: WaitingPlace, idle = 1): Promise<Admission> => {
    await still();
    return await replica(at).admitClaim({ pool, instance: `i${++born}`, limit: 1e9, idle, place });
  };
  const waiting = async (): Promise<number> => {
    await still();
    return await replica(0).waiting(pool);
  };
  const beat = async (at: number): Promise<void> => {
    await replica(at).beat();
    dead.delete(at);
  };

  it('have one order', async () => {
    const [first, second, third] = [await join(0), await join(1), await join(0)];

    expect(await waiting()).to.equal(3);
    expect([await admit(0, third, 2), await admit(1, second), await admit(2)]).to.deep.equal([
      'not-its-turn',
      'not-its-turn',
      'not-its-turn',
    ]);
    expect([await admit(0, first), await admit(1, second), await admit(0, third)]).to.deep.equal([
      'admitted',
      'admitted',
      'admitted',
    ]);
  });

  it("with keys of managers displace no entry that identifies a client's requests", async () => {
    const requests = new RedisRequests({ link, keys, log: quietLog, bounds: FEW_BYTES, limit: 2 });
    const owner = { tenant: ALICE, ttlMs: 60_000 };
    const markOf = (key: string) => ({ key: key.padEnd(22, '-'), body: 'b'.repeat(22) });
    const open = (key: string, of: RequestOwner) => requests.openRequest(markOf(key), of);
    await open('client', owner);
    await requests.keepAnswer(markOf('client'), owner, 'an answer');
    const managers = { ...owner, isOfManager: true } as const;
    for (const key of ['a', 'b', 'c'])
      expect(await open(key, managers)).to.include({ kind: 'new' });

    expect(await open('client', owner)).to.deep.equal({ kind: 'answered', answer: 'an answer' });
    for (const key of ['b', 'c']) expect(await requests.confirmRequest(markOf(key))).to.equal(true);
  });

  it('are limited to 256 per pool, without Redis if one replica has them all', async () => {
    const [r1, r2] = replicas;
    const asked: string[] = [];
    const run = link.run.bind(link);
    link.run = (...call) => {
      asked.push(call[0]);
      return run(...call);
    };
    const places: WaitingPlace[] = [];
    for (let n = 0; n < 256; n += 1) places.push(await r1.joinWaiting(pool));
    expect(asked.splice(0)).to.have.length(256);

    expect(await rejection(r1.joinWaiting(pool))).to.include({ code: 'TOO_MANY_WAITING' });
    expect(asked).to.deep.equal([]);
    expect(await rejection(r2.joinWaiting(pool))).to.include({ code: 'TOO_MANY_WAITING' });
    expect(asked).to.deep.equal(['join_waiting']);
    for (const place of places.slice(0, 1)) await r1.leaveWaiting(place);
    await r1.joinWaiting(pool);
    expect(await rejection(r1.joinWaiting(pool))).to.include({ code: 'TOO_MANY_WAITING' });
  });

  it('are skipped while their replica is dead, and get their position back when it returns', async () => {
    const [first, second] = [await join(1), await join(0)];
    dead.add(1);
    expect(await waiting()).to.equal(1);
    await beat(1);
    expect(await admit(0, second)).to.equal('not-its-turn');
    dead.add(1);

    expect(await admit(0, second)).to.equal('admitted');
    expect(await admit(1, first)).to.equal('admitted');
  });

  it('keep their order if Redis loses it', async () => {
    const [first, second] = [await join(1), await join(0)];
    await redis().client.del(keys.waiting(pool), keys.waitingSeen(pool));
    await Promise.all([beat(0), beat(1)]);

    expect(await admit(0, second)).to.equal('not-its-turn');
    expect([await admit(1, first), await admit(0, second)]).to.deep.equal(['admitted', 'admitted']);
  });

  it('do not block others after they leave, even if Redis did not receive it', async () => {
    const place = await join(0);
    await redis().client.zadd(keys.waiting(pool), '1', 'left|r1');
    expect(await admit(0, place)).to.equal('not-its-turn');
    await beat(0);

    expect(await admit(0, place)).to.equal('admitted');
  });

  it('do not block others after they leave during an outage, even as the last on their replica', async () => {
    const place = await join(0);
    const held = link.run.bind(link);
    link.run = () => Promise.reject(new Error('away'));
    await replica(0)
      .leaveWaiting(place)
      .catch(() => undefined);
    link.run = held;
    expect(await admit(1)).to.equal('not-its-turn');

    await beat(0);

    expect(await admit(1)).to.equal('admitted');
    expect(await waiting()).to.equal(0);
  });

  it('lose their position at their admission, even during a concurrent heartbeat', async () => {
    await join(1);
    const [first, second] = [await join(0), await join(0)];
    await still();
    const admit = (place: WaitingPlace, idle: number) =>
      replica(0).admitClaim({ pool, instance: `i${++born}`, limit: 1e9, idle, place });
    const [admitted, refused] = await Promise.all([
      admit(first, 2),
      admit(second, 1),
      replica(0).beat(),
    ]);

    expect([admitted, refused]).to.deep.equal(['admitted', 'not-its-turn']);
    expect(await waiting()).to.equal(2);
    await beat(0);
    expect(await waiting()).to.equal(2);
  });

  it('lose their position at their admission, even if an earlier heartbeat had to be repeated', async () => {
    const place = await join(0);
    await still();
    const now = link.time.now.bind(link.time);
    link.time.now = () => {
      link.time.now = now;
      return (now() ?? 0) - 60_000; // as if it had been long on its way
    };
    const beat = replica(0).beat();
    expect(
      await replica(0).admitClaim({ pool, instance: `i${++born}`, limit: 1e9, idle: 1, place }),
    ).to.equal('admitted');
    await Promise.all([beat, replica(0).leaveWaiting(place)]);

    expect(await waiting()).to.equal(0);
    expect(await admit(1)).to.equal('admitted');
  });

  it('are reported again if they left during the report', async () => {
    const place = await join(0);
    const run = link.run.bind(link);
    link.run = async (script, names, args) => {
      const sent = typeof args === 'function' ? args() : args;
      await replica(0).leaveWaiting(place);
      return await run(script, names, sent);
    };
    const beat = replica(0).beat();
    link.run = run;
    await beat;
    expect(await waiting()).to.equal(1);

    await replica(0).beat();
    expect(await waiting()).to.equal(0);
  });

  it('are skipped if they ignore an idle instance for three seconds, until they take it', async () => {
    const [first, second] = [await join(1), await join(0)];
    const ago = (field: ':since' | ':last', ms: number) =>
      redis().client.hincrby(keys.waitingSeen(pool), field, -ms);
    expect(await admit(0, second)).to.equal('not-its-turn');
    await ago(':since', 3_000);
    await ago(':last', 2_000);
    expect(await admit(0, second), 'nobody asked for a while').to.equal('not-its-turn');
    await ago(':since', 3_000);
    await redis().client.hset(keys.waitingSeen(pool), ':last', FAR);

    expect(await admit(0, second)).to.equal('admitted');
    expect(await admit(1, first)).to.equal('admitted');
  });

  it("leave an instance to another replica's attempt for a second", async () => {
    const [first, second] = [await join(0), await join(1)];
    const tryFor = async (at: number, place: WaitingPlace | undefined, instance: string) => {
      await still();
      return await replica(at).admitClaim({ pool, instance, limit: 1e9, idle: 1, place });
    };
    const later = (ms: number) =>
      redis().client.zincrby(keys.pendingReservations(ALICE, 'sandboxes'), ms, 'x');
    expect(await tryFor(0, first, 'x')).to.equal('admitted');
    await later(60_000); // no second goes by before the test says so

    expect(await tryFor(1, second, 'x')).to.equal('not-its-turn');
    expect(await waiting()).to.equal(1);
    expect(await tryFor(2, undefined, 'y')).to.equal('not-its-turn');
    expect(await tryFor(0, first, 'x'), 'its own').to.equal('admitted');
    await later(-61_000);
    expect(await tryFor(1, second, 'x')).to.equal('admitted');
  });

  it('expire a minute after their last heartbeat', async () => {
    await join(0);

    for (const key of [keys.waiting(pool), keys.waitingSeen(pool)])
      expect(await redis().client.pttl(key)).to.be.within(1, 60_000);
  });

  const step = fc.oneof(
    ...(
      [
        ['join', 4],
        ['leave', 2],
        ['admit', 6],
        ['die', 1],
        ['beat', 1],
        ['lose', 1],
      ] as const
    ).map(([kind, weight]) => ({
      weight,
      arbitrary: fc.record({
        kind: fc.constant(kind),
        at: fc.nat(2),
        pick: fc.nat(20),
        idle: fc.integer({ min: 1, max: 4 }),
      }),
    })),
  );

  it('are served in order, each once, while replicas come and go', async function () {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        anew();
        /** Those who wait, in their order. */
        let order: { readonly at: number; readonly place: WaitingPlace }[] = [];
        const gone = async (waiter: (typeof order)[number]): Promise<void> => {
          order = order.filter((other) => other !== waiter);
          await replica(waiter.at).leaveWaiting(waiter.place);
        };
        for (const { kind, at, pick, idle } of steps) {
          const waiter = order[pick];
          if (kind === 'join') {
            order.push({ at, place: await join(at) });
            await beat(at);
          } else if (kind === 'leave' && waiter) {
            await gone(waiter);
          } else if (kind === 'admit') {
            await redis().client.hdel(keys.waitingSeen(pool), ':front');
            const before = order
              .slice(0, waiter ? pick : order.length)
              .filter((other) => !dead.has(other.at)).length;
            const admission = await admit(waiter?.at ?? at, waiter?.place, idle);
            expect(admission).to.equal(before < idle ? 'admitted' : 'not-its-turn');
            if (admission === 'admitted' && waiter) await gone(waiter);
          } else if (kind === 'die') {
            dead.add(at);
          } else if (kind === 'beat') {
            await beat(at);
          } else if (kind === 'lose') {
            await redis().client.del(keys.waiting(pool), keys.waitingSeen(pool));
            for (const each of [0, 1, 2]) await beat(each);
          }
        }
        for (const each of [0, 1, 2]) await beat(each);
        expect(await waiting()).to.equal(order.length);
        for (const waiter of order) {
          expect(await admit(waiter.at, waiter.place)).to.equal('admitted');
          await gone(waiter);
        }
        expect(await waiting()).to.equal(0);
      }),
      { numRuns: runs(60) },
    );
  });
});
