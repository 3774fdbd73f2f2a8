import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import { BENCH_FLAGS, Daemon } from '../daemon.ts';
import { inPairs, type Bench, type Figure } from '../figure.ts';
import { expectAll } from '../load.ts';
import type { Measure } from '../measure.ts';
import { childrenOf, cpuMsOf, pause, residentMbOf } from '../process-facts.ts';
import { quantile } from '../statistics.ts';

const POOL = 'bench';
const CLAIMS = 200;
const WARM_UP = 4;
const IDLE_MS = 15_000;
const SETTLE_MS = 3_000;
const SAME = { better: 'less', reach: 1.02, beyond: 0.95 } as const;

/** Compares this build with another, whose root folder is given: both start in turn. */
export const buildsAgainst = (folder: string): readonly Figure[] => {
  const theirs = resolve(folder, 'dist/cli/main.js');
  const start = starterOf(theirs);
  return [
    {
      name: 'builds:start',
      about: `fill, memory and idle time of a daemon with ${CLAIMS} sandboxes, against ${folder}`,
      run: async (bench) => {
        const side = (command?: string) => async () => await startOf(await start(bench, command));
        return inRows(await inPairs(bench, { ours: side(), theirs: side(theirs) }), [
          [`pool of ${CLAIMS} filled`, 'ms', ({ fillMs }) => fillMs],
          ['memory without sandboxes', 'MB', ({ freshMb }) => freshMb],
          [`memory with ${CLAIMS} idle sandboxes`, 'MB', ({ filledMb }) => filledMb],
          ['memory for each of them', 'KB', ({ eachKb }) => eachKb],
          ['idle: share of a processor, daemon and helpers', '%', ({ idlePercent }) => idlePercent],
        ]);
      },
    },
    {
      name: 'builds:claim',
      about: `latency and processor time of a claim, one at a time, against ${folder}`,
      run: async (bench) => {
        const [mine, other] = [await start(bench), await start(bench, theirs)];
        try {
          for (const daemon of [mine, other]) await daemon.service.createFullPool(POOL, CLAIMS);
          for (let round = 0; round < WARM_UP; round += 1)
            for (const daemon of [mine, other]) await claimsOf(bench, daemon, 8);
          const side = (daemon: Daemon) => () => claimsOf(bench, daemon, 1);
          return inRows(await inPairs(bench, { ours: side(mine), theirs: side(other) }), [
            ['claim p50, one at a time', 'ms', ({ p50 }) => p50],
            ['claim p99, one at a time', 'ms', ({ p99 }) => p99],
            ['processor time of a claim', 'ms', ({ cpuMs }) => cpuMs],
          ]);
        } finally {
          for (const daemon of [mine, other]) await daemon.dispose();
        }
      },
    },
  ];
};

type Row<T> = readonly [name: string, unit: string, of: (sample: T) => number];

const inRows = <T>(
  { ours, theirs }: { readonly ours: readonly T[]; readonly theirs: readonly T[] },
  rows: readonly Row<T>[],
): readonly Measure[] =>
  rows.map(([name, unit, of]) => ({
    name,
    unit,
    ...SAME,
    ours: ours.map(of),
    theirs: theirs.map(of),
  }));

/** Starts this build, or that of the main file with the flags that it knows. */
const starterOf = (theirs: string) => {
  const help = execFileSync(process.execPath, [theirs, 'serve', '--help'], { encoding: 'utf8' });
  const flagOf = (index: number): string => BENCH_FLAGS[index - (index % 2)] ?? '';
  const benchFlags = BENCH_FLAGS.filter((_, index) => help.includes(flagOf(index)));
  return async (bench: Bench, command?: string): Promise<Daemon> =>
    command === undefined
      ? await Daemon.start(bench.load)
      : await Daemon.start(bench.load, [], { command, benchFlags });
};

const startOf = async (daemon: Daemon) => {
  try {
    await daemon.calm();
    const freshMb = residentMbOf(daemon.pid);
    const began = performance.now();
    await daemon.service.createFullPool(POOL, CLAIMS);
    const fillMs = performance.now() - began;
    await daemon.calm();
    await pause(SETTLE_MS);
    const filledMb = residentMbOf(daemon.pid);
    const pids = [daemon.pid, ...childrenOf(daemon.pid)];
    const cpuMs = (): number => pids.reduce((sum, pid) => sum + cpuMsOf(pid), 0);
    const before = cpuMs();
    await pause(IDLE_MS);
    const idlePercent = ((cpuMs() - before) / IDLE_MS) * 100;
    return {
      fillMs,
      freshMb,
      filledMb,
      eachKb: ((filledMb - freshMb) * 1_024) / CLAIMS,
      idlePercent,
    };
  } finally {
    await daemon.dispose();
  }
};

const claimsOf = async (bench: Bench, daemon: Daemon, inFlight: number) => {
  const { service } = daemon;
  const before = cpuMsOf(daemon.pid);
  const result = await bench.load.closed(service.port, service.claims(POOL, CLAIMS), inFlight);
  const cpuMs = (cpuMsOf(daemon.pid) - before) / CLAIMS;
  expectAll(result, 201);
  await service.giveBack(result);
  await service.untilIdle(POOL, CLAIMS);
  await daemon.calm();
  return {
    p50: quantile(result.latencies, 0.5),
    p99: quantile(result.latencies, 0.99),
    cpuMs,
  };
};
