import { randomUUID } from 'node:crypto';
import { Daemon } from '../daemon.ts';
import { inPairs, type Figure } from '../figure.ts';
import type { Measure } from '../measure.ts';
import { cpuMsOf } from '../process-facts.ts';
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
      const side = (keyed: boolean) => async (): Promise<Sample> => {
        const asks = service.claims(POOL, CLAIMS).map((ask) => (keyed ? { ...ask, idempotencyKey: randomUUID() } : ask));
        const before = cpuMsOf(daemon.pid);
        const result = await bench.load.closed(service.port, asks, 1);
        const cpuMs = (cpuMsOf(daemon.pid) - before) / CLAIMS;
        await service.giveBack(result);
        await service.untilIdle(POOL, CLAIMS);
        await daemon.calm();
        return { p50: quantile(result.latencies, 0.5), cpuMs };
      };
      for (let turn = 0; turn < WARM_UP; turn += 1) await side(turn % 2 === 0)();
      const { ours, theirs } = await inPairs(bench, { ours: side(true), theirs: side(false) });
      const row = (name: string, of: (sample: Sample) => number): Measure =>
        ({ name: `claim ${name}, with an Idempotency-Key / without`, unit: 'ms', better: 'less', ours: ours.map(of), theirs: theirs.map(of) });
      return [{ ...row('p50', ({ p50 }) => p50), reach: 1.3, beyond: 1.1 }, row('processor time', ({ cpuMs }) => cpuMs)];
    } finally {
      await daemon.dispose();
    }
  },
};

interface Sample { readonly p50: number; readonly cpuMs: number }

const WARM_UP = 4;
