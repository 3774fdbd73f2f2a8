import { expect } from 'chai';
import { RedisHistory } from '../../src/redis/history.ts';
import type { RedisSettings } from '../../src/redis/settings.ts';
import { systemClock } from '../../src/embedded/system-clock.ts';
import { aFinished, historySuite, MANY_BYTES, recordAll } from '../contracts/history.ts';
import { eventually } from '../support/harness/eventually.ts';
import { ALICE } from '../support/builders/instance-orders.ts';
import { MemoryMetrics } from '../support/fakes/memory-metrics.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { noRedis, startRedis, startRedisCluster } from '../../local-cluster/redis-server.ts';
import { onRedis } from '../support/harness/on-redis.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';
import { sampled } from '../support/harness/sampled.ts';

interface Running {
  readonly settings: RedisSettings;
  flush(): Promise<unknown>;
  stop(): Promise<void>;
}

const one = async (): Promise<Running> => {
  const { settings, client, stop } = await startRedis();
  return { settings, flush: () => client.flushall(), stop };
};
const cluster = async (): Promise<Running> => {
  const { settings, nodes, stop } = await startRedisCluster();
  return { settings, flush: () => Promise.all(nodes.map((node) => node.flushall())), stop };
};

/** No clock moves on its own, so that nothing is forgotten. */
const KEPT_MS = 10 * 365 * 86_400_000;

const startedHistory = async (
  settings: RedisSettings,
  part: Partial<ConstructorParameters<typeof RedisHistory>[0]> = {},
): Promise<RedisHistory> => {
  const history = new RedisHistory({
    metrics: silentMetrics,
    settings,
    clock: new TestClock(),
    log: quietLog,
    retentionMs: KEPT_MS,
    bounds: MANY_BYTES,
    ...part,
  });
  await history.start();
  return history;
};

for (const [name, start] of [
  ['Redis', one],
  ['a Redis cluster', cluster],
] as const) {
  describe(`history over ${name}`, function () {
    let running: Running;
    before(async function () {
      if (noRedis !== undefined) skipBecause(this, noRedis);
      running = await start();
    });
    after(() => running?.stop());

    sampled(() => {
      historySuite(name, async () => {
        await running.flush();
        const history = await startedHistory(running.settings, { clock: systemClock() });
        return { history, close: () => history.stop() };
      });
    });
  });
}

describe('history in Redis', () => {
  const redis = onRedis();

  it('deletes entries older than the retention time, in steps, with all related data', async () => {
    const { settings, client } = redis();
    const clock = new TestClock();
    const history = await startedHistory(settings, { clock, retentionMs: 86_400_000 });
    const old = Array.from({ length: 250 }, (_, n) =>
      aFinished({
        claimedAt: clock.now() - 1_000 - n,
        terminatedAt: clock.now() - n,
        poolName: `p${n % 3}`,
      }),
    );
    const newer = aFinished({
      claimedAt: clock.now() - 2_000,
      terminatedAt: clock.now() + 3_600_000,
    });
    await recordAll(history, [...old, newer]);
    const event = {
      at: clock.now(),
      owner: ALICE,
      poolName: 'p0',
      sandboxId: old[0]?.id ?? '',
      reason: 'Ready',
    } as const;
    await history.recordEvents([{ id: 1, event }]);

    clock.advance(86_400_000 + 60_000);
    await eventually(async () => {
      clock.advance(1_000);
      return (await history.list({}, { offset: 0, limit: 1 })).total === 1;
    }, 'the old ones are forgotten');

    expect((await history.list({}, { offset: 0, limit: 10 })).items).to.deep.equal([newer]);
    expect(await history.countByNamespace()).to.deep.equal(new Map([['alpha', 1]]));
    expect(await history.find(old[0]?.id ?? '')).to.equal(undefined);
    clock.advance(86_400_000);
    await eventually(
      async () => (
        clock.advance(60_000),
        (await history.list({}, { offset: 0, limit: 1 })).total === 0
      ),
      'the last one is forgotten',
    );
    expect((await client.keys('*')).toSorted()).to.deep.equal(['sandpool:{history}:last-group']);
    await history.stop();
  });

  it('keeps the events of a deleted pool for the retention time', async () => {
    const { settings, client } = redis();
    const history = await startedHistory(settings, { retentionMs: 86_400_000 });
    const tell = (id: number, reason: 'Created' | 'Deleted') =>
      history.recordEvents([{ id, event: { at: id, owner: ALICE, poolName: 'p', reason } }]);
    const days = async (): Promise<number> =>
      Math.ceil((await client.pttl('sandpool:{history}:pool_events:alpha/p')) / 86_400_000);
    await tell(1, 'Created');
    expect(await days()).to.equal(90);
    await tell(2, 'Deleted');
    expect(await days()).to.equal(1);
    await tell(3, 'Created');
    expect(await days()).to.equal(90);
    await history.stop();
  });

  it("deletes early what exceeds an owner's bytes, or the largest owner's if the total is too large", async () => {
    const { settings, client } = redis();
    const clock = new TestClock();
    const now = clock.now();
    const metrics = new MemoryMetrics();
    const history = await startedHistory(settings, {
      clock,
      metrics,
      retentionMs: 86_400_000,
      bounds: { totalBytes: 1_500_000, tenantBytes: 1_000_000 },
    });
    const of = (user: string, count: number, at = now) =>
      Array.from({ length: count }, (_, n) =>
        aFinished({ owner: { ...ALICE, user }, claimedAt: at, terminatedAt: at + n }),
      );
    const record = (some: ReturnType<typeof of>): Promise<void> => recordAll(history, some);
    const left = async (user: string): Promise<number> =>
      (await history.list({ owner: { ...ALICE, user } }, { offset: 0, limit: 1 })).total;
    const quiet = of('quiet', 10, now - 9_000);
    const loud = of('loud', 250);
    const event = {
      at: now,
      owner: ALICE,
      poolName: 'default',
      reason: 'Unhealthy',
      why: 'x'.repeat(4_000),
    } as const;
    await history.recordEvents(
      loud.slice(0, 100).map(({ id }, n) => ({ id: n, event: { ...event, sandboxId: id } })),
    );
    await record([...quiet, ...loud]); // 200 in all: it is looked at once
    await history.recordEvents(
      loud.slice(100).map(({ id }, n) => ({ id: 500 + n, event: { ...event, sandboxId: id } })),
    );
    await eventually(
      async () => (clock.advance(1_000), (await left('loud')) === 150),
      'the loud one has its share',
    );
    expect(await history.find(loud[99]?.id ?? '')).to.equal(undefined);

    await record(of('second', 400, now + 1_000));
    await record(of('third', 390, now + 2_000));
    await eventually(
      async () => (clock.advance(1_000), (await left('second')) === 300),
      'all have theirs',
    );
    clock.advance(60_000);
    expect(await Promise.all(['quiet', 'loud', 'second', 'third'].map(left))).to.deep.equal([
      10, 50, 300, 390,
    ]);
    expect(metrics.counted('sandpool_history_forgotten_early_total', {})).to.equal(300);

    clock.advance(2 * 86_400_000);
    await eventually(
      async () => (
        clock.advance(1_000),
        (await history.list({}, { offset: 0, limit: 1 })).total === 0
      ),
      'all are too old',
    );
    // nothing is counted any more
    expect((await client.keys('*')).toSorted()).to.deep.equal(['sandpool:{history}:last-group']);
    await history.stop();
  });

  it('deletes the oldest entries, with a warning, when Redis runs short of memory', async function () {
    const most = 8 * 2 ** 20;
    const { settings, client, stop } = await startRedis({
      config: [`maxmemory ${most}`, 'maxmemory-policy noeviction'],
    });
    const clock = new TestClock();
    const began = clock.now();
    const log: string[] = [];
    const metrics = new MemoryMetrics();
    const history = await startedHistory(settings, {
      clock,
      log: {
        ...quietLog,
        warn: (_: unknown, event: string) => {
          log.push(event);
        },
      },
      metrics,
    });
    const recorded: string[] = [];
    const shareUsed = async (): Promise<number> =>
      Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]) / most;
    for (let batch = 0; batch < 30; batch++) {
      const some = Array.from({ length: 100 }, (_, n) =>
        aFinished({
          claimedAt: began + batch * 1_000 + n,
          terminatedAt: began + batch * 1_000 + n + 500,
          cpu: 'x'.repeat(3_000),
        }),
      );
      for (const finished of some) await history.record(finished); // in the order of their ends
      recorded.push(...some.map(({ id }) => id));
      const hasRoom = async (): Promise<boolean> => {
        clock.advance(5_000);
        return (await shareUsed()) < 0.7;
      };
      await eventually(hasRoom, 'the oldest are forgotten');
    }
    await eventually(() => {
      clock.advance(5_000);
      return log.length > 0;
    }, 'it is said');

    const { total, items } = await history.list({}, { offset: 0, limit: 10 });
    expect(total).to.be.within(100, recorded.length - 100);
    expect(items[0]?.id).to.equal(recorded.at(-1)); // the newest is there, the oldest has gone
    expect(await history.find(recorded[0] ?? '')).to.equal(undefined);
    expect(log).to.include('history-deleted-early');
    expect(history.warnings().join()).to.include('were deleted before history.retention');
    expect(metrics.counted('sandpool_history_forgotten_early_total', {})).to.equal(
      recorded.length - total,
    );
    await history.stop();
    await stop();
  });

  it('reads no more of a list by pool if others have many pools', async () => {
    const { settings, client } = redis();
    const history = await startedHistory(settings);
    const groups = `${settings.prefix}:{history}:groups`;
    await history.record(aFinished({ poolName: 'mine' }));
    const work = async (): Promise<readonly string[]> => {
      await client.config('SET', 'slowlog-log-slower-than', '0');
      await client.config('RESETSTAT');
      const { total } = await history.list(
        { owner: ALICE, poolName: 'mine' },
        { offset: 0, limit: 20 },
      );
      expect(total).to.equal(1);
      const stats = await client.info('commandstats');
      return stats
        .split('\r\n')
        .flatMap(
          (line) => /^cmdstat_(z\w+|h\w+):calls=(\d+)/.exec(line)?.slice(1, 3).join(' ') ?? [],
        )
        .toSorted();
    };
    const alone = await work();
    for (let n = 0; n < 20_000; n += 1_000)
      await client.hset(
        groups,
        ...Array.from({ length: 1_000 }, (_, i) => [`a/a/u${n + i}/p`, String(n + i + 10)]).flat(),
      );

    expect(await work()).to.deep.equal(alone);
    await history.stop();
  });
});
