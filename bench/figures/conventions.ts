import { randomUUID } from 'node:crypto';
import { Daemon } from '../daemon.ts';
import { inPairs, type Bench, type Figure } from '../figure.ts';
import type { Measure } from '../measure.ts';
import { leanAssembly } from '../lean-assembly.ts';
import { cpuMsOf } from '../process-facts.ts';
import { quantile } from '../statistics.ts';

/** Claims a round; the pool holds as many, and is full again before the next. */
const CLAIMS = 200;
const POOL = 'bench';
/** Rounds of each side before anything counts, until the code is compiled. */
const WARM_UP = 4;
const REACH = { reach: 1.3, beyond: 1.1 };

export const conventions: Figure = {
  name: 'conventions',
  about:
    'a claim with an Idempotency-Key, events and checks, against a daemon without them; and the key alone',
  run: async (bench) => {
    const whole = await Daemon.start(bench.load);
    try {
      const lean = await Daemon.start(bench.load, [], { command: leanAssembly() });
      try {
        await whole.service.createFullPool(POOL, CLAIMS);
        await lean.service.createFullPool(POOL, CLAIMS);
        return [
          ...(await compare(bench, 'with key, events and checks / without', [
            claims(bench, whole, true),
            claims(bench, lean, false),
          ])),
          ...(await compare(bench, 'with an Idempotency-Key / without', [
            claims(bench, whole, true),
            claims(bench, whole, false),
          ])),
        ];
      } finally {
        await lean.dispose();
      }
    } finally {
      await whole.dispose();
    }
  },
};

interface Sample {
  readonly p50: number;
  readonly cpuMs: number;
}
type Side = () => Promise<Sample>;

const compare = async (
  bench: Bench,
  what: string,
  [ours, theirs]: readonly [Side, Side],
): Promise<readonly Measure[]> => {
  for (let turn = 0; turn < WARM_UP; turn += 1) {
    await ours();
    await theirs();
  }
  const found = await inPairs(bench, { ours, theirs });
  const row = (name: string, of: (sample: Sample) => number): Measure => ({
    name: `claim ${name}, ${what}`,
    unit: 'ms',
    better: 'less',
    ours: found.ours.map(of),
    theirs: found.theirs.map(of),
  });
  return [
    { ...row('p50', ({ p50 }) => p50), ...REACH },
    row('processor time', ({ cpuMs }) => cpuMs),
  ];
};

/**
 * Claims the whole pool, one after the other, then gives all back and waits until nothing is under
 * way.
 */
const claims =
  (bench: Bench, daemon: Daemon, keyed: boolean): Side =>
  async () => {
    const { service } = daemon;
    const asks = service
      .claims(POOL, CLAIMS)
      .map((ask) => (keyed ? { ...ask, idempotencyKey: randomUUID() } : ask));
    const before = cpuMsOf(daemon.pid);
    const result = await bench.load.closed(service.port, asks, 1);
    const cpuMs = (cpuMsOf(daemon.pid) - before) / CLAIMS;
    await service.giveBack(result);
    await service.untilIdle(POOL, CLAIMS);
    await daemon.calm();
    return { p50: quantile(result.latencies, 0.5), cpuMs };
  };
