import { Daemon } from '../daemon.ts';
import type { Bench, Figure } from '../figure.ts';
import type { LoadResult } from '../load-protocol.ts';
import { cpuMsOf } from '../process-facts.ts';
import { quantile } from '../statistics.ts';

/** Claims a round of each side; the pools hold as many, and are full again before the next. */
const CLAIMS = 200;
/** At a time: the sides take turns so often that what else the machine does meets both. */
const SLICE = 20;
const POOL = 'bench';
/** Rounds before anything counts, until the code is compiled. */
const WARM_UP = 4;
const SILENT: readonly string[] = [
  '--metrics-listen',
  'none',
  '--audit-mode',
  'off',
  '--log-level',
  'error',
];

export const telling: Figure = {
  name: 'telling',
  about: 'a claim with logs, metrics and audit, against a daemon without them',
  run: async (bench) => {
    const whole = await Daemon.start(bench.load);
    try {
      const silent = await Daemon.start(bench.load, SILENT);
      try {
        for (const { service } of [whole, silent]) await service.createFullPool(POOL, CLAIMS);
        const found: (readonly [Sample, Sample])[] = [];
        for (let round = 0; round < WARM_UP + bench.rounds; round += 1)
          found.push(await inSlices(bench, whole, silent));
        const pairs = found.slice(WARM_UP);
        const row = (name: string, of: (sample: Sample) => number) =>
          ({
            name: `claim ${name}, with logs, metrics and audit / without`,
            unit: 'ms',
            better: 'less',
            ours: pairs.map(([ours]) => of(ours)),
            theirs: pairs.map(([, theirs]) => of(theirs)),
          }) as const;
        return [
          { ...row('p50', ({ p50 }) => p50), reach: 1.15, beyond: 1.05 },
          row('processor time', ({ cpuMs }) => cpuMs),
        ];
      } finally {
        await silent.dispose();
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

/**
 * Claims both pools, one claim after the other, then gives all back and waits until nothing is
 * under way.
 */
const inSlices = async (
  bench: Bench,
  whole: Daemon,
  silent: Daemon,
): Promise<readonly [Sample, Sample]> => {
  const [ours, theirs] = [new Side(bench, whole), new Side(bench, silent)];
  for (let slice = 0; slice < CLAIMS / SLICE; slice += 1) {
    for (const side of slice % 2 === 0 ? [ours, theirs] : [theirs, ours]) await side.claimSome();
  }
  for (const side of [ours, theirs]) await side.giveBack();
  for (const daemon of [whole, silent]) {
    await daemon.service.untilIdle(POOL, CLAIMS);
    await daemon.calm();
  }
  return [ours.sample, theirs.sample];
};

class Side {
  readonly #bench: Bench;
  readonly #daemon: Daemon;
  readonly #claimed: LoadResult[] = [];
  #cpuMs = 0;

  constructor(bench: Bench, daemon: Daemon) {
    this.#bench = bench;
    this.#daemon = daemon;
  }

  get sample(): Sample {
    return {
      p50: quantile(
        this.#claimed.flatMap(({ latencies }) => latencies),
        0.5,
      ),
      cpuMs: this.#cpuMs / CLAIMS,
    };
  }

  async claimSome(): Promise<void> {
    const { service, pid } = this.#daemon;
    const before = cpuMsOf(pid);
    this.#claimed.push(await this.#bench.load.closed(service.port, service.claims(POOL, SLICE), 1));
    this.#cpuMs += cpuMsOf(pid) - before;
  }

  async giveBack(): Promise<void> {
    for (const result of this.#claimed) await this.#daemon.service.giveBack(result);
  }
}
