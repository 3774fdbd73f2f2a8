import { randomUUID } from 'node:crypto';
import { Daemon } from '../daemon.ts';
import { inPairs, type Figure } from '../figure.ts';
import { quantile } from '../statistics.ts';

/** Claims a round; the pool holds as many, and is full again before the next. */
const CLAIMS = 200;
const POOL = 'bench';

export const conventions: Figure = {
  name: 'conventions',
  about: 'claim p50 with an Idempotency-Key, against one without',
  run: async (bench) => {
    const daemon = await Daemon.start(bench.load);
    try {
      const { service } = daemon;
      await service.createFullPool(POOL, CLAIMS);
      const side = (keyed: boolean) => async (): Promise<number> => {
        const asks = service.claims(POOL, CLAIMS).map((ask) => (keyed ? { ...ask, idempotencyKey: randomUUID() } : ask));
        const result = await bench.load.closed(service.port, asks, 1);
        await service.giveBack(result);
        await service.untilIdle(POOL, CLAIMS);
        await daemon.calm();
        return quantile(result.latencies, 0.5);
      };
      for (let turn = 0; turn < WARM_UP; turn += 1) await side(turn % 2 === 0)();
      return [{ name: 'claim p50, with an Idempotency-Key / without', unit: 'ms', better: 'less', reach: 1.3, beyond: 1.1, ...await inPairs(bench, { ours: side(true), theirs: side(false) }) }];
    } finally {
      await daemon.dispose();
    }
  },
};

const WARM_UP = 4;
