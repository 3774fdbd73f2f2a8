import { Daemon } from '../daemon.ts';
import { inPairs, type Bench, type Figure } from '../figure.ts';
import { cpuMsOf } from '../process-facts.ts';
import { quantile } from '../statistics.ts';

/** Claims a round; the pool holds as many, and is full again before the next. */
const CLAIMS = 200;
const POOL = 'bench';
/** Rounds of each side before anything counts, until the code is compiled. */
const WARM_UP = 4;
const SILENT: readonly string[] = ['--metrics-listen', 'none', '--audit-mode', 'off', '--log-level', 'error'];

export const telling: Figure = {
  name: 'telling',
  about: 'a claim with logs, metrics and audit, against a daemon without them',
  run: async (bench) => {
    const whole = await Daemon.start(bench.load);
    try {
      const silent = await Daemon.start(bench.load, SILENT);
      try {
        const [ours, theirs] = [whole, silent].map((daemon) => claims(bench, daemon)) as [Side, Side];
        for (const { service } of [whole, silent]) await service.createFullPool(POOL, CLAIMS);
        for (let turn = 0; turn < WARM_UP; turn += 1) for (const side of [ours, theirs]) await side();
        const found = await inPairs(bench, { ours, theirs });
        const row = (name: string, of: (sample: Sample) => number) =>
          ({ name: `claim ${name}, with logs, metrics and audit / without`, unit: 'ms', better: 'less', ours: found.ours.map(of), theirs: found.theirs.map(of) } as const);
        return [{ ...row('p50', ({ p50 }) => p50), reach: 1.15, beyond: 1.05 }, row('processor time', ({ cpuMs }) => cpuMs)];
      } finally {
        await silent.dispose();
      }
    } finally {
      await whole.dispose();
    }
  },
};

interface Sample { readonly p50: number; readonly cpuMs: number }
type Side = () => Promise<Sample>;

/** Claims the whole pool, one after the other, then gives all back and waits until nothing is under way. */
const claims = (bench: Bench, daemon: Daemon): Side => async () => {
  const { service } = daemon;
  const before = cpuMsOf(daemon.pid);
  const result = await bench.load.closed(service.port, service.claims(POOL, CLAIMS), 1);
  const cpuMs = (cpuMsOf(daemon.pid) - before) / CLAIMS;
  await service.giveBack(result);
  await service.untilIdle(POOL, CLAIMS);
  await daemon.calm();
  return { p50: quantile(result.latencies, 0.5), cpuMs };
};
