import { Daemon } from '../daemon.ts';
import { inPairs, type Bench, type Figure } from '../figure.ts';
import type { Ask } from '../kept-connection.ts';
import { costOf, expectAll } from '../load.ts';
import { rowOf } from '../measure.ts';
import { median } from '../statistics.ts';

const KEYS = 1_000;
const POOLS = 200;
/** On either side. */
const IDLE = 200;
/** At a time; then all pools are full again. */
const CLAIMS = 16;
const TURNS = 6;
const WARM_UP = 3;

export const tenants: Figure = {
  name: 'tenants',
  about: `claims with ${KEYS} keys and ${POOLS} pools, against one of each, ${IDLE} idle on either side`,
  run: async (bench) => {
    await using many = await Daemon.start(bench.load);
    await using one = await Daemon.start(bench.load);
    const pairs = await inPairs(
      bench,
      {
        ours: await claimsOf(bench, many, { keys: KEYS, pools: POOLS }),
        theirs: await claimsOf(bench, one, { keys: 1, pools: 1 }),
      },
      WARM_UP,
    );
    const name = `claim p50 with ${KEYS} keys and ${POOLS} pools / with one of each`;
    return [rowOf({ name, reach: 1.1, beyond: 1.03 }, pairs, (ms) => ms)];
  },
};

/** Alternates keys and pools. Returns the p50. */
const claimsOf = async (
  { load }: Bench,
  daemon: Daemon,
  count: { readonly keys: number; readonly pools: number },
): Promise<() => Promise<number>> => {
  const { service } = daemon;
  const more = Math.max(0, count.keys - 2); // the first start made two
  const keys = [daemon.key, ...(await moreKeys(load, daemon, more))];
  const pools = Array.from({ length: count.pools }, (_, n) => `pool-${n}`);
  const idle = IDLE / count.pools;
  for (const pool of pools) await service.createPool(pool, idle);
  for (const pool of pools) await service.untilIdle(pool, idle);
  let from = 0;
  return async () => {
    const p50s: number[] = [];
    for (let turn = 0; turn < TURNS; turn += 1, from += CLAIMS) {
      const turns = Array.from({ length: CLAIMS }, (_, n) => from + n);
      const asks = turns.map((n): Ask => ({
        method: 'POST',
        path: '/sandboxes',
        key: keys[n % keys.length] ?? '',
        body: JSON.stringify({ poolName: pools[n % pools.length] }),
      }));
      const { p50, result } = await costOf([], 201, () => load.closed(service.port, asks, 1));
      p50s.push(p50);
      await service.giveBack(result);
      for (const n of turns) await service.untilIdle(pools[n % pools.length] ?? '', idle);
      await daemon.calm();
    }
    return median(p50s);
  };
};

const moreKeys = async (
  load: Bench['load'],
  { service }: Daemon,
  count: number,
): Promise<readonly string[]> => {
  const ask: Ask = { method: 'POST', path: '/api-keys', body: '{}' };
  const asks = service.keyed(Array.from({ length: count }, () => ask));
  const made = await load.closed(service.port, asks, 8);
  expectAll(made, 201);
  return made.bodies.map((body) => (JSON.parse(body) as { readonly apiKey: string }).apiKey);
};
