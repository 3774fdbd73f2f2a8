import { startRedis, type RedisServer } from '../../../local-cluster/redis-server.ts';
import { silentLog } from '../../../src/contracts/log.ts';
import { systemClock } from '../../../src/embedded/system-clock.ts';
import type { FinishedSandbox } from '../../../src/model/sandbox.ts';
import { RedisHistory } from '../../../src/redis/history.ts';
import type { Figure } from '../../figure.ts';
import { pause } from '../../process-facts.ts';
import { median } from '../../statistics.ts';
import { silentMetrics } from '../../../src/contracts/metrics.ts';

const OWNER = { namespace: 'team-0', team: 'team-0', user: 'user-0' };
const KEPT_MS = 86_400_000;
const FEW = 100;
const MANY = 100_000;
const LISTS = 200;
/**
 * Stands for what a day at 20 claims a second is to a Redis of some GiB: several times its memory.
 */
const MEMORY_BYTES = 16 * 2 ** 20;
const DAY = 40_000;
const AT_ONCE = 50;
/** So that some 1,000 a second come, fifty times what is asked for. */
const BATCH_MS = 45;
/** Of 1: what came did fill it. */
const FULL = 0.6;

const aHistory = async (redis: RedisServer): Promise<RedisHistory> => {
  const history = new RedisHistory({
    metrics: silentMetrics,
    settings: redis.settings,
    clock: systemClock(),
    log: silentLog,
    retentionMs: KEPT_MS,
    bounds: { totalBytes: Number.MAX_SAFE_INTEGER, tenantBytes: Number.MAX_SAFE_INTEGER },
  });
  await history.start();
  return history;
};

const aFinished = (n: number, poolName = 'pool-0'): FinishedSandbox => ({
  id: `0190d4a5-7b1e-7c3a-9f00-${n.toString(16).padStart(12, '0')}`,
  poolUid: 'u',
  poolName,
  owner: OWNER,
  createdAt: Date.now(),
  claimedAt: Date.now(),
  startedAt: Date.now(),
  terminatedAt: Date.now(),
  recycledAt: Date.now(),
  cpu: '1',
  memory: '128Mi',
  containerImages: { main: 'registry.invalid/sandbox:1' },
  endReason: 'deleted',
  exitCode: null,
});

/**
 * Milliseconds of a list by pool, of one tenant, while all tenants together have so many pools with
 * history.
 */
const listMs = async (pools: number): Promise<number> => {
  const redis = await startRedis({ syncs: true });
  const history = await aHistory(redis);
  try {
    for (let n = 0; n < pools; n += AT_ONCE) {
      await redis.client.hset(
        `${redis.settings.prefix}:{history}:groups`,
        ...Array.from({ length: AT_ONCE }, (_, i) => [
          `t/t/user-${n + i}/pool`,
          String(n + i + 10),
        ]).flat(),
      );
    }
    for (let n = 0; n < 20; n++) await history.record(aFinished(n));
    const times: number[] = [];
    for (let n = 0; n < LISTS; n++) {
      const began = performance.now();
      await history.list({ owner: OWNER, poolName: 'pool-0' }, { offset: 0, limit: 20 });
      times.push(performance.now() - began);
    }
    return median(times);
  } finally {
    await history.stop();
    await redis.stop();
  }
};

/** The most of Redis' memory that was in use, of 1, while far more history came than fits. */
const mostUsed = async (say: (text: string) => void): Promise<number> => {
  const redis = await startRedis({
    syncs: true,
    config: [`maxmemory ${MEMORY_BYTES}`, 'maxmemory-policy noeviction'],
  });
  const history = await aHistory(redis);
  const used = async (): Promise<number> =>
    Number(/used_memory:(\d+)/.exec(await redis.client.info('memory'))?.[1]) / MEMORY_BYTES;
  try {
    let most = 0;
    for (let n = 0; n < DAY; n += AT_ONCE) {
      await Promise.all(
        Array.from({ length: AT_ONCE }, (_, i) => history.record(aFinished(n + i))),
      );
      most = Math.max(most, await used());
      await pause(BATCH_MS);
    }
    if (most < FULL) throw new Error(`nothing filled it: ${most}`);
    const { total } = await history.list({}, { offset: 0, limit: 0 });
    say(`${DAY} recorded, ${total} kept; ${history.warnings().join()}`);
    return most;
  } finally {
    await history.stop();
    await redis.stop();
  }
};

export const history: Figure = {
  name: 'history',
  about:
    "a list by pool where others have much history, and what history leaves free of Redis' memory",
  run: async (bench) => {
    const [many, few]: [number[], number[]] = [[], []];
    for (let round = 0; round < bench.rounds; round += 1) {
      few.push(await listMs(FEW));
      many.push(await listMs(MANY));
    }
    return [
      {
        name: 'GET /sandboxes?poolName=, 100,000 groups of history / 100',
        unit: 'ms',
        better: 'less',
        ours: many,
        theirs: few,
        reach: 2,
        beyond: 1.2,
      },
      {
        name: 'Redis memory in use at most, of maxmemory',
        unit: '',
        better: 'less',
        ours: [await mostUsed(bench.say)],
        reach: 0.7,
      },
    ];
  },
};
