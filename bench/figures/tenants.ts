import { Daemon } from '../daemon.ts';
import { inPairs, type Figure } from '../figure.ts';
import { expectAll, type Load } from '../load.ts';
import { claimsBy, makeKeys } from '../many-keys.ts';
import { quantile } from '../statistics.ts';

const KEYS = 1_000;
const POOLS = 200;
/** In all, on either side. */
const IDLE = 200;
/** Claims at a time, then all pools are full again; so many times a round. */
const CLAIMS = 16;
const TURNS = 6;
const WARM_UP = 3;

export const tenants: Figure = {
  name: 'tenants',
  about: `claim p50 with ${KEYS} keys and ${POOLS} pools, against one of each, ${IDLE} idle on either side`,
  run: async (bench) => {
    const [many, one] = [await Daemon.start(bench.load), await Daemon.start(bench.load)];
    try {
      const manySide = await sideOf(bench.load, many, { keys: KEYS, pools: POOLS });
      const oneSide = await sideOf(bench.load, one, { keys: 1, pools: 1 });
      for (let turn = 0; turn < WARM_UP; turn += 1) {
        await manySide();
        await oneSide();
      }
      const pairs = await inPairs(bench, { ours: manySide, theirs: oneSide });
      return [
        {
          name: `claim p50 with ${KEYS} keys and ${POOLS} pools / with one of each`,
          unit: 'ms',
          better: 'less',
          reach: 1.1,
          beyond: 1.03,
          ...pairs,
        },
      ];
    } finally {
      await Promise.all([many.dispose(), one.dispose()]);
    }
  },
};

const sideOf = async (
  load: Load,
  daemon: Daemon,
  count: { readonly keys: number; readonly pools: number },
): Promise<() => Promise<number>> => {
  const { service } = daemon;
  const keys = await makeKeys(load, service, count.keys - 2); // the first start made two
  const pools = Array.from({ length: count.pools }, (_, n) => `pool-${n}`);
  const idle = IDLE / count.pools;
  for (const pool of pools) await service.createPool(pool, idle);
  for (const pool of pools) await service.untilIdle(pool, idle);
  let from = 0;
  return async () => {
    const latencies: number[] = [];
    for (let turn = 0; turn < TURNS; turn += 1) {
      const asks =
        keys.length === 0
          ? service.claims('pool-0', CLAIMS)
          : claimsBy(keys, pools, { from, count: CLAIMS });
      const result = await load.closed(service.port, asks, 1);
      expectAll(result, 201);
      latencies.push(...result.latencies);
      await service.giveBack(result);
      for (let n = 0; n < CLAIMS; n += 1)
        await service.untilIdle(pools[(from + n) % pools.length] ?? '', idle);
      from += CLAIMS;
      await daemon.calm();
    }
    return quantile(latencies, 0.5);
  };
};
