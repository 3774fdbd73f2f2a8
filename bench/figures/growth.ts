import { Daemon } from '../daemon.ts';
import { inPairs, type Figure } from '../figure.ts';
import { expectAll } from '../load.ts';
import { quantile } from '../statistics.ts';

const POOLS = 100;
const IDLE_A_POOL = 10;
/** Claims at a time, then the pool is full again; so many times a round. */
const CLAIMS = 8;
const TURNS = 8;

export const growth: Figure = {
  name: 'growth',
  about: 'claim p50 with 100 pools and 1,000 idle sandboxes, against 1 pool and 10 idle',
  run: async (bench) => {
    const [large, small] = [await Daemon.start(bench.load), await Daemon.start(bench.load)];
    try {
      for (let at = 0; at < POOLS; at += 1)
        await large.service.createPool(`pool-${at}`, IDLE_A_POOL);
      for (let at = 0; at < POOLS; at += 1)
        await large.service.untilIdle(`pool-${at}`, IDLE_A_POOL);
      await small.service.createFullPool('pool-0', IDLE_A_POOL);
      const side =
        (
          { service, calm }: { service: Daemon['service']; calm: () => Promise<void> },
          pools: number,
        ) =>
        async (): Promise<number> => {
          const latencies: number[] = [];
          for (let turn = 0; turn < TURNS; turn += 1) {
            const pool = `pool-${turn % pools}`;
            const result = await bench.load.closed(service.port, service.claims(pool, CLAIMS), 1);
            expectAll(result, 201);
            latencies.push(...result.latencies);
            await service.giveBack(result);
            await service.untilIdle(pool, IDLE_A_POOL);
            await calm();
          }
          return quantile(latencies, 0.5);
        };
      const [ours, theirs] = [
        side({ service: large.service, calm: () => large.calm() }, POOLS),
        side({ service: small.service, calm: () => small.calm() }, 1),
      ];
      await ours();
      await theirs();
      return [
        {
          name: `claim p50, ${POOLS} pools and ${POOLS * IDLE_A_POOL} idle / 1 and ${IDLE_A_POOL}`,
          unit: 'ms',
          better: 'less',
          ...(await inPairs(bench, { ours, theirs })),
        },
      ];
    } finally {
      await Promise.all([large.dispose(), small.dispose()]);
    }
  },
};
