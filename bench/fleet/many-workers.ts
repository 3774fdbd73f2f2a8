import { Daemon } from '../daemon.ts';
import { inPairs, type Bench, type Figure } from '../figure.ts';
import { heapOf } from '../figures/idle.ts';
import { fillHistory } from '../filled-history.ts';
import { scriptedAssembly } from '../lean-assembly.ts';
import { expectAll } from '../load.ts';
import { cpuMsOf, pause } from '../process-facts.ts';
import type { Service } from '../service.ts';
import { quantile } from '../statistics.ts';
import { startManager, untilLinked } from './a-fleet.ts';
import { namesOf, Workers } from './workers.ts';

const [CLUSTERS, SANDBOXES] = [50, 2_000];
const PAGES = 60;
const WORKERS = 200;
/** Linked before the memory of a link is measured: code is compiled by then. */
const FIRST = 10;
const CALM_MS = 15_000;
const IDLE_MS = 30_000;
const MOST_ROUNDS = 3;
const [CLAIMS, IN_FLIGHT] = [10_000, 64];

/** Runs with a manager, and a process of clusters that are links alone. */
const withWorkers = async <T>(
  bench: Bench,
  run: (manager: Daemon, join: Join) => Promise<T>,
  terms: Parameters<typeof startManager>[1] = {},
): Promise<T> => {
  const manager = await startManager(bench, terms);
  const workers = new Workers();
  try {
    return await run(manager, async (names, sandboxes) => {
      await workers.join(manager, names, sandboxes);
    });
  } finally {
    await workers.stop();
    await manager.dispose();
  }
};

type Join = (names: readonly string[], sandboxes: number) => Promise<void>;

export const lists: Figure = {
  name: 'fleet:list',
  about: `a page of sandboxes over ${CLUSTERS} clusters of ${SANDBOXES}, against one of ${CLUSTERS * SANDBOXES}`,
  run: async (bench) =>
    await withWorkers(bench, async (manager, join) => {
      await join(namesOf('w', CLUSTERS), SANDBOXES);
      await untilLinked(manager, CLUSTERS);
      const total = CLUSTERS * SANDBOXES;
      const single = await Daemon.start(bench.load, [], { prepare: fillHistory(total) });
      try {
        const side = (service: Service) => async (): Promise<number> => {
          const [page] = service.keyed([{ method: 'GET', path: '/sandboxes' }]);
          if (!page) throw new Error('there is nothing to ask');
          const asks = Array.from({ length: PAGES }, () => page);
          const result = await bench.load.closed(service.port, asks, 1);
          expectAll(result, 200);
          const list = JSON.parse(result.bodies[0] ?? '') as { items: unknown[]; total: number };
          if (list.items.length !== 20 || list.total !== total)
            throw new Error(`a page had ${list.items.length} of ${list.total}`);
          return quantile(result.latencies, 0.5);
        };
        for (let turn = 0; turn < 3; turn += 1) {
          await side(manager.service)();
          await side(single.service)();
        }
        return [
          {
            name: `a page over ${CLUSTERS} clusters of ${SANDBOXES} / over one of ${total}, p50`,
            unit: 'ms',
            better: 'less',
            reach: 3,
            beyond: 1.5,
            ...(await inPairs(bench, {
              ours: side(manager.service),
              theirs: side(single.service),
            })),
          },
        ];
      } finally {
        await single.dispose();
      }
    }),
};

export const idleLinks: Figure = {
  name: 'fleet:idle',
  about: `${WORKERS} workers that do nothing: processor time of their manager, memory of each link`,
  run: async (bench) =>
    await withWorkers(
      bench,
      async (manager, join) => {
        await join(namesOf('first', FIRST), 0);
        await pause(CALM_MS);
        const before = await heapOf(manager);
        await join(namesOf('w', WORKERS), 0);
        await untilLinked(manager, FIRST + WORKERS);
        await pause(CALM_MS);
        const shares: number[] = [];
        for (let round = 0; round < Math.min(bench.rounds, MOST_ROUNDS); round += 1) {
          const usedMs = cpuMsOf(manager.pid);
          await pause(IDLE_MS);
          shares.push(((cpuMsOf(manager.pid) - usedMs) / IDLE_MS) * 100);
        }
        const link = ((await heapOf(manager)) - before) / WORKERS / 1_024;
        return [
          {
            name: `${WORKERS} idle workers: share of a processor of their manager`,
            unit: '%',
            better: 'less',
            reach: 5,
            beyond: 2,
            ours: shares,
          },
          {
            name: `${WORKERS} idle workers: memory of a manager for each link`,
            unit: 'KiB',
            better: 'less',
            reach: 200,
            beyond: 100,
            ours: [link],
          },
        ];
      },
      { command: scriptedAssembly() },
    ),
};

export const managerAlone: Figure = {
  name: 'fleet:manager',
  about: `claims a second that one manager routes to ${WORKERS} workers that answer at once`,
  run: async (bench) =>
    await withWorkers(bench, async (manager, join) => {
      const names = namesOf('w', WORKERS);
      await join(names, 0);
      await untilLinked(manager, WORKERS);
      const { service, pid } = manager;
      const asks = names.flatMap((name) => service.claims(`${name}::bench`, CLAIMS / WORKERS));
      const found: { readonly rate: number; readonly cpuMs: number }[] = [];
      for (let round = 0; round <= bench.rounds; round += 1) {
        const usedMs = cpuMsOf(pid);
        const result = await bench.load.closed(service.port, asks, IN_FLIGHT);
        expectAll(result, 201);
        const cpuMs = (cpuMsOf(pid) - usedMs) / CLAIMS;
        if (round > 0) found.push({ rate: CLAIMS / (result.tookMs / 1_000), cpuMs });
      }
      return [
        {
          name: `claims that a manager routes to ${WORKERS} workers`,
          unit: '/s',
          better: 'more',
          ours: found.map(({ rate }) => rate),
        },
        {
          name: 'processor time of a manager for each claim that it routes',
          unit: 'ms',
          better: 'less',
          ours: found.map(({ cpuMs }) => cpuMs),
        },
      ];
    }),
};
