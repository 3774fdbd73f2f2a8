import type { Daemon } from '../daemon.ts';
import { inPairs, type Bench, type Figure } from '../figure.ts';
import type { Ask } from '../kept-connection.ts';
import { Load, expectAll } from '../load.ts';
import type { Measure } from '../measure.ts';
import { cpuMsOf, residentMbOf } from '../process-facts.ts';
import { quantile } from '../statistics.ts';
import { startManager, untilLinked } from './a-fleet.ts';
import { namesOf, Workers } from './workers.ts';

const SANDBOXES = 500;
const [FEW, SOME, MANY] = [10, 50, 200];
/** Far from what a manager bears, so that what is seen is cost and not waiting. */
const AT_A_TIME = 4;
const CLAIMS = 1_500;
const PAGES = 30;
const MOST_ROUNDS = 5;
/** Of each manager; beyond what it answers at a time. */
const [BURST, IN_FLIGHT] = [6_000, 128];

/** A manager with so many workers, each with its sandboxes. */
interface Fleet {
  readonly count: number;
  readonly manager: Daemon;
  readonly workers: Workers;
  readonly asks: readonly Ask[];
}

const withFleets = async <T>(
  bench: Bench,
  counts: readonly number[],
  run: (fleets: readonly Fleet[]) => Promise<T>,
): Promise<T> => {
  const undo: (() => Promise<void>)[] = [];
  try {
    const fleets: Fleet[] = [];
    for (const count of counts) {
      const workers = new Workers();
      undo.push(() => workers.stop());
      const manager = await startManager(bench);
      undo.push(() => manager.dispose());
      const names = namesOf('w', count);
      await workers.join(manager, names, SANDBOXES);
      await untilLinked(manager, count);
      fleets.push({ count, manager, workers, asks: claimsOver(manager, names, CLAIMS) });
    }
    return await run(fleets);
  } finally {
    for (const step of undo.toReversed()) await step();
  }
};

/** As many claims, of one cluster after the other. */
const claimsOver = (
  { service }: Daemon,
  names: readonly string[],
  count: number,
): readonly Ask[] => {
  const each = names.flatMap((name) => service.claims(`${name}::bench`, 1));
  return Array.from({ length: count }, (_, n) => each[n % each.length]!); // there are some
};

interface Cost {
  readonly cpuMs: number;
  readonly p50: number;
  readonly p99: number;
}

const costOfClaims = async (bench: Bench, { manager, asks }: Fleet): Promise<Cost> => {
  const before = cpuMsOf(manager.pid);
  const result = await bench.load.closed(manager.service.port, asks, AT_A_TIME);
  expectAll(result, 201);
  const [p50, p99] = [quantile(result.latencies, 0.5), quantile(result.latencies, 0.99)];
  return { p50, p99, cpuMs: (cpuMsOf(manager.pid) - before) / asks.length };
};

const costOfPages = async (bench: Bench, { manager, count }: Fleet): Promise<Cost> => {
  const { service, pid } = manager;
  const [page] = service.keyed([{ method: 'GET', path: '/sandboxes' }]);
  if (!page) throw new Error('there is nothing to ask');
  const before = cpuMsOf(pid);
  const asks = Array.from({ length: PAGES }, () => page);
  const result = await bench.load.closed(service.port, asks, 1);
  expectAll(result, 200);
  const { total } = JSON.parse(result.bodies[0] ?? '') as { readonly total: number };
  if (total !== count * SANDBOXES) throw new Error(`a page was of ${total}`);
  const [p50, p99] = [quantile(result.latencies, 0.5), quantile(result.latencies, 0.99)];
  return { p50, p99, cpuMs: (cpuMsOf(pid) - before) / PAGES };
};

export const atScale: Figure = {
  name: 'fleet:scale',
  about: `a claim, ${AT_A_TIME} at a time, and a page of a list, with ${MANY} and ${SOME} workers of ${SANDBOXES} sandboxes, against ${FEW}`,
  run: async (bench) => {
    const pairs = { ...bench, rounds: Math.min(bench.rounds, MOST_ROUNDS) };
    return await withFleets(bench, [FEW, SOME, MANY], async (fleets) => {
      const [few, some, many] = fleets as [Fleet, Fleet, Fleet];
      const rows: Measure[] = [];
      for (const [what, costOf] of [
        ['claim', costOfClaims],
        ['page', costOfPages],
      ] as const) {
        for (const fleet of fleets) await costOf(bench, fleet);
        for (const fleet of [some, many]) {
          const found = await inPairs(pairs, {
            ours: () => costOf(bench, fleet),
            theirs: () => costOf(bench, few),
          });
          rows.push(...rowsOf(`${what}, ${fleet.count} workers / ${FEW}`, found));
        }
      }
      const memory = ({ manager }: Fleet): number => residentMbOf(manager.pid);
      rows.push({
        ...{ name: `resident memory of a manager, ${MANY} workers / ${FEW}`, unit: 'MB' },
        ...{ better: 'less', ours: [memory(many)], theirs: [memory(few)] },
      });
      return rows;
    });
  },
};

const rowsOf = (
  name: string,
  { ours, theirs }: { readonly ours: readonly Cost[]; readonly theirs: readonly Cost[] },
): readonly Measure[] =>
  (
    [
      ['processor time of the manager', 'cpuMs'],
      ['p50', 'p50'],
      ['p99', 'p99'],
    ] as const
  ).map(([of, field]) => ({
    ...{ name: `${name}: ${of}`, unit: 'ms', better: 'less' },
    ours: ours.map((cost) => cost[field]),
    theirs: theirs.map((cost) => cost[field]),
  }));

interface Rush {
  readonly rate: number;
  readonly cpuMs: number;
  readonly workersMs: number;
  readonly loopMs: number;
  readonly share: number;
}

export const severalManagers: Figure = {
  name: 'fleet:managers',
  about: `claims a second over ${MANY} workers of ${SANDBOXES} sandboxes by two managers at a time, against one`,
  run: async (bench) => {
    const undo: (() => Promise<void>)[] = [];
    try {
      const workers = new Workers();
      undo.push(() => workers.stop());
      const names = namesOf('w', MANY);
      const managers: Daemon[] = [];
      for (let n = 0; n < 2; n += 1) {
        const manager = await startManager(bench);
        undo.push(() => manager.dispose());
        await workers.join(manager, names, SANDBOXES);
        await untilLinked(manager, MANY);
        managers.push(manager);
      }
      const other = new Load();
      undo.push(() => other.stop());
      const rush = rushOver({ loads: [bench.load, other], workers, names });
      await rush(managers);
      const found = await inPairs(bench, {
        ours: () => rush(managers),
        theirs: () => rush(managers.slice(0, 1)),
      });
      const row = (name: string, unit: string, of: keyof Rush): Measure => ({
        ...{ name, unit, better: of === 'rate' ? 'more' : 'less' },
        ours: found.ours.map((each) => each[of]),
        theirs: found.theirs.map((each) => each[of]),
      });
      return [
        row(`claims over ${MANY} workers, two managers / one`, '/s', 'rate'),
        row('processor time of the managers for each claim, two / one', 'ms', 'cpuMs'),
        row('processor time of the workers’ process for each claim, two / one', 'ms', 'workersMs'),
        row('share of a processor that each manager had, two / one', '%', 'share'),
        row('event-loop delay p99 of a manager meanwhile, two / one', 'ms', 'loopMs'),
      ];
    } finally {
      for (const step of undo.toReversed()) await step();
    }
  },
};

interface RushTerms {
  readonly loads: readonly Load[];
  readonly workers: Workers;
  readonly names: readonly string[];
}

/** As many claims at each manager as it answers, at all of them at the same time. */
const rushOver =
  ({ loads, workers, names }: RushTerms) =>
  async (managers: readonly Daemon[]): Promise<Rush> => {
    const used = (): number => managers.reduce((sum, { pid }) => sum + cpuMsOf(pid), 0);
    await Promise.all(managers.map(loopDelayOf)); // counts anew from here
    const [before, workersBefore] = [used(), cpuMsOf(workers.pid)];
    const results = await Promise.all(
      managers.map(async (manager, n) => {
        const result = await loads[n]!.closed(
          // one for each
          manager.service.port,
          claimsOver(manager, names, BURST),
          IN_FLIGHT,
        );
        expectAll(result, 201);
        return result.tookMs;
      }),
    );
    const claims = managers.length * BURST;
    const cpuMs = used() - before;
    const tookMs = Math.max(...results);
    const delays = await Promise.all(managers.map(loopDelayOf));
    return {
      rate: claims / (tookMs / 1_000),
      cpuMs: cpuMs / claims,
      workersMs: (cpuMsOf(workers.pid) - workersBefore) / claims,
      share: (cpuMs / tookMs / managers.length) * 100,
      loopMs: Math.max(...delays),
    };
  };

/** Since it was last asked. */
const loopDelayOf = async (manager: Daemon): Promise<number> => {
  const text = await (await fetch(manager.metricsAddress)).text();
  return Number(/^nodejs_eventloop_lag_p99_seconds (\S+)$/m.exec(text)?.[1] ?? NaN) * 1_000;
};
