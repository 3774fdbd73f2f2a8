import { Child } from '../child.ts';
import { Daemon } from '../daemon.ts';
import type { Bench, Figure } from '../figure.ts';
import { KeptConnection, encodeAsk, type Ask } from '../kept-connection.ts';
import { rowOf } from '../measure.ts';
import type { FloodOrder, FloodResult } from '../overload-process.ts';
import { pause } from '../process-facts.ts';
import { median } from '../statistics.ts';

const TIMES = 10;
const FOR_MS = 20_000;
const CONNECTIONS = 256;
const MOST_WAITING = 16;
/** Finds the sustainable load. */
const SUSTAINED = 32;
const ASKS = 4_000;
const LOOK_EVERY_MS = 50;
/** Normal again: the median of these lists took at most twice as long as before. */
const LOOKS = 20;
const NORMAL_DEADLINE_MS = 30_000;

export const overload: Figure = {
  name: 'overload',
  about: `${TIMES} times the sustainable load for ${FOR_MS / 1_000} s: what is answered, how health fares, when it is over`,
  run: async (bench) => {
    await using daemon = await Daemon.start(bench.load);
    await using flood = new Child<FloodOrder, FloodResult>('overload-process');
    const { service } = daemon;
    await service.createFullPool('used', 1);
    await service.createPool('empty', 0);
    const asks = service.keyed(mixOf(await service.claim('used')));
    const perSecond = TIMES * (await sustainableOf(bench, service.port, asks));
    const runs: Run[] = [];
    for (let round = 0; round < Math.min(bench.rounds, MOST_ROUNDS); round += 1) {
      const run = await flooded(flood, { port: service.port, asks, perSecond });
      bench.say(
        `offered ${Math.round(perSecond)}/s; sent ${run.flood.sent}, not sent for want of room ${run.flood.notSent}, answers ${JSON.stringify(run.flood.statuses)}, connections ended ${run.flood.ended}`,
      );
      runs.push(run);
      await daemon.calm();
    }
    const found = { ours: runs };
    const others = `answers other than 2xx, 429, 503 at ${TIMES} times the load`;
    return [
      rowOf({ name: others, unit: '', reach: 0, beyond: 0 }, found, ({ flood: { statuses } }) =>
        othersIn(statuses),
      ),
      rowOf(
        { name: '/healthz in that time, longest', reach: 500, beyond: 100 },
        found,
        ({ healthMs }) => healthMs,
      ),
      rowOf(
        { name: 'until lists take what they took before', unit: 's', reach: 5, beyond: 2 },
        found,
        ({ normalS }) => normalS,
      ),
    ];
  },
};

const MOST_ROUNDS = 3;
const LIST: Ask = { method: 'GET', path: '/sandboxes' };

/** Reads, refused claims, and committed writes. */
const mixOf = (id: string): readonly Ask[] => [
  LIST,
  { method: 'GET', path: `/sandboxes/${id}` },
  LIST,
  { method: 'GET', path: '/sandboxpools/used' },
  { method: 'GET', path: '/sandboxpools' },
  { method: 'POST', path: '/sandboxes', body: '{"poolName":"empty"}' },
  { method: 'POST', path: '/sandboxes', body: '{"poolName":"used"}' },
  { method: 'POST', path: '/sandboxes', body: '{"poolName":"empty"}' },
  { method: 'PUT', path: `/sandboxes/${id}/idle-timeout`, body: '{"idleTimeout":"1h"}' },
  { method: 'PUT', path: `/sandboxes/${id}/idle-timeout`, body: '{"idleTimeout":"2h"}' },
];

interface Run {
  readonly flood: FloodResult;
  readonly healthMs: number;
  readonly normalS: number;
}

/** Answered per second. */
const sustainableOf = async (bench: Bench, port: number, asks: readonly Ask[]): Promise<number> => {
  const many = Array.from({ length: ASKS }, (_, n) => asks[n % asks.length] ?? LIST);
  await bench.load.closed(port, many, SUSTAINED);
  const { tookMs } = await bench.load.closed(port, many, SUSTAINED);
  return (ASKS / tookMs) * 1_000;
};

const flooded = async (
  flood: Child<FloodOrder, FloodResult>,
  load: Pick<FloodOrder, 'port' | 'asks' | 'perSecond'>,
): Promise<Run> => {
  const connection = await KeptConnection.open(load.port);
  const timed = async (ask: Ask): Promise<number> => {
    const began = performance.now();
    const { status } = await connection.send(encodeAsk(ask));
    if (ask.path === HEALTH.path && status !== 200)
      throw new Error(`${ask.path} was answered ${status}`);
    return status === 200 ? performance.now() - began : Number.POSITIVE_INFINITY;
  };
  const [list = LIST] = load.asks;
  try {
    const before = await medianOf(() => timed(list));
    let over = false;
    const done = flood
      .ask({ ...load, forMs: FOR_MS, connections: CONNECTIONS, mostWaiting: MOST_WAITING })
      .finally(() => {
        over = true;
      });
    let healthMs = 0;
    while (!over) {
      healthMs = Math.max(healthMs, await timed(HEALTH));
      await pause(LOOK_EVERY_MS);
    }
    const result = await done;
    const ended = performance.now();
    while (
      (await medianOf(() => timed(list))) > 2 * before &&
      performance.now() - ended < NORMAL_DEADLINE_MS
    )
      await pause(LOOK_EVERY_MS);
    return { flood: result, healthMs, normalS: (performance.now() - ended) / 1_000 };
  } finally {
    connection.close();
  }
};

const HEALTH: Ask = { method: 'GET', path: '/healthz' };

const medianOf = async (timed: () => Promise<number>): Promise<number> => {
  const values: number[] = [];
  for (let n = 0; n < LOOKS; n += 1) values.push(await timed());
  return median(values);
};

const othersIn = (statuses: FloodResult['statuses']): number =>
  Object.entries(statuses).reduce(
    (sum, [status, count]) => sum + (/^2\d\d$|^429$|^503$/.test(status) ? 0 : count),
    0,
  );
