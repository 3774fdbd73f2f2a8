import { strongestBare, type Bare } from '../bare.ts';
import { Daemon } from '../daemon.ts';
import { inPairs, type Bench, type Figure } from '../figure.ts';
import { expectAll } from '../load.ts';
import type { LoadResult } from '../load-protocol.ts';
import type { Measure } from '../measure.ts';
import { cpuMsOf } from '../process-facts.ts';
import { quantile } from '../statistics.ts';

/** Claims a round; the pool holds as many, and is full again before the next. */
const CLAIMS = 200;
/**
 * Rounds before anything counts, until the code is compiled; the bare servers get as many requests.
 */
const WARM_UP = 5;
const POOL = 'bench';
const PER_SECOND = 100;
const REACH = { reach: 1.5, beyond: 1.2 };

export const claim: Figure = {
  name: 'claim',
  about: 'latency of a claim against a bare durable POST, one at a time and at 100/s',
  run: async (bench) => {
    const daemon = await Daemon.start(bench.load);
    try {
      await daemon.service.createFullPool(POOL, CLAIMS);
      for (let round = 0; round < WARM_UP; round += 1)
        await oneRound(daemon, (asks) => bench.load.closed(daemon.service.port, asks, 8));
      const alone = await compare(bench, daemon, {
        what: 'one at a time',
        run: (port, asks) => bench.load.closed(port, asks, 1),
      });
      const steady = await compare(bench, daemon, {
        what: `${PER_SECOND}/s`,
        run: (port, asks) => bench.load.open(port, asks, PER_SECOND),
      });
      return [...alone, ...steady];
    } finally {
      await daemon.dispose();
    }
  },
};

interface Sample {
  readonly p50: number;
  readonly p99: number;
  readonly cpuMs: number;
}

interface Shape {
  readonly what: string;
  readonly run: (port: number, asks: ReturnType<Bare['asks']>) => Promise<LoadResult>;
}

const compare = async (
  bench: Bench,
  daemon: Daemon,
  { what, run }: Shape,
): Promise<readonly Measure[]> => {
  const bare = await strongestBare(
    bench.folder,
    bench.load,
    (each) => run(each.port, each.asks(CLAIMS)),
    (result) => quantile(result.latencies, 0.5),
  );
  bench.say(`${what}: the strongest bare server commits ${bare.mode}`);
  try {
    const { ours, theirs } = await inPairs(bench, {
      ours: async () => {
        const before = cpuMsOf(daemon.pid);
        let cpuMs = 0;
        const result = await oneRound(daemon, async (asks) => {
          const answered = await run(daemon.service.port, asks);
          cpuMs = cpuMsOf(daemon.pid) - before;
          return answered;
        });
        return sampleOf(result, cpuMs);
      },
      theirs: async () => {
        const before = cpuMsOf(bare.pid);
        const result = await run(bare.port, bare.asks(CLAIMS));
        expectAll(result, 201);
        return sampleOf(result, cpuMsOf(bare.pid) - before);
      },
    });
    const row = (name: string, unit: string, of: (sample: Sample) => number): Measure => ({
      name: `claim ${name}, ${what}`,
      unit,
      better: 'less',
      ours: ours.map(of),
      theirs: theirs.map(of),
    });
    return [
      { ...row('p50', 'ms', ({ p50 }) => p50), ...REACH },
      row('p99', 'ms', ({ p99 }) => p99),
      row('processor time', 'ms', ({ cpuMs }) => cpuMs),
    ];
  } finally {
    await bare.stop();
  }
};

/**
 * Claims the whole pool, then gives all back and waits until it is full and nothing is under way.
 */
const oneRound = async (
  daemon: Daemon,
  run: (asks: ReturnType<Bare['asks']>) => Promise<LoadResult>,
): Promise<LoadResult> => {
  const result = await run(daemon.service.claims(POOL, CLAIMS));
  await daemon.service.giveBack(result);
  await daemon.service.untilIdle(POOL, CLAIMS);
  await daemon.calm();
  return result;
};

const sampleOf = ({ latencies }: LoadResult, cpuMs: number): Sample => ({
  p50: quantile(latencies, 0.5),
  p99: quantile(latencies, 0.99),
  cpuMs: cpuMs / latencies.length,
});
