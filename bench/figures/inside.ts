import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Daemon } from '../daemon.ts';
import { inPairs, type Bench, type Figure } from '../figure.ts';
import type { Ask } from '../kept-connection.ts';
import { scriptedAssembly } from '../lean-assembly.ts';
import { expectAll } from '../load.ts';
import type { LoadResult } from '../load-protocol.ts';
import type { Measure } from '../measure.ts';
import { quantile } from '../statistics.ts';

const [MANY, FEW] = [100_000, 1_000];
const POOL_SIZE = 10_000;
const PAGES = 200;
const WARM_UP = 4;
/** By default a pool launches 200 a second: a hundred thousand would take eight minutes. */
export const SCRIPTED_FLAGS: readonly string[] = [
  '--quotas-sandboxes',
  '1000000',
  '--quotas-replicas',
  '1000000',
  '--refill-per-second',
  '10000',
  '--refill-burst',
  '10000',
];

export const inside: Figure = {
  name: 'inside',
  about: `pages of actors and of sandboxes at ${MANY} running / at ${FEW}; a state chart; instances are scripted`,
  run: async (bench) => {
    const command = scriptedAssembly();
    const many = await Daemon.start(bench.load, SCRIPTED_FLAGS, { command });
    try {
      const few = await Daemon.start(bench.load, SCRIPTED_FLAGS, { command });
      try {
        await running(bench, few, FEW);
        await running(bench, many, MANY);
        return await rowsOf(bench, many, few);
      } finally {
        await few.dispose();
      }
    } finally {
      await many.dispose();
    }
  },
};

const rowsOf = async (bench: Bench, many: Daemon, few: Daemon): Promise<readonly Measure[]> => {
  const rows: Measure[] = [];
  for (const { name, pathIn } of PAGES_OF) {
    const [ours, theirs] = [
      pageOf(bench, many, await pathIn(bench, many)),
      pageOf(bench, few, await pathIn(bench, few)),
    ];
    rows.push({
      name: `${name}, ${MANY} / ${FEW} running, p50`,
      unit: 'ms',
      better: 'less',
      reach: 1.5,
      beyond: 1.1,
      ...(await warmPairs(bench, { ours, theirs })),
    });
  }
  const charts: number[] = [];
  const chart = pageOf(bench, many, '/debug/machines/sandbox?format=svg');
  for (let round = 0; round <= bench.rounds; round += 1) charts.push(await chart());
  return [
    ...rows,
    {
      name: 'state chart of the sandbox machine as SVG, p50',
      unit: 'ms',
      better: 'less',
      reach: 50,
      beyond: 20,
      ours: charts.slice(1),
    },
  ]; // the first warms up
};

const PAGES_OF: readonly {
  readonly name: string;
  readonly pathIn: (bench: Bench, daemon: Daemon) => Promise<string>;
}[] = [
  { name: 'page of actors', pathIn: async () => '/debug/actors?kind=sandbox' },
  {
    name: 'page of actors in one state',
    pathIn: async () => '/debug/actors?kind=sandbox&state=running',
  },
  {
    name: 'page of one actor',
    pathIn: async (bench, daemon) => {
      const {
        bodies: [body],
      } = await asked(bench, daemon, { path: '/debug/actors?kind=sandbox&limit=1', times: 1 });
      const [actor] = (
        JSON.parse(body ?? '') as { readonly items: readonly { readonly key: string }[] }
      ).items;
      if (!actor) throw new Error('there are no actors');
      return `/debug/actors/sandbox/${actor.key}`;
    },
  },
  { name: 'page of sandboxes', pathIn: async () => '/sandboxes' },
];

/** So many, of as few pools as can be. */
const running = async (bench: Bench, { service }: Daemon, count: number): Promise<void> => {
  for (let left = count; left > 0; left -= POOL_SIZE) {
    const [name, size] = [`claimed-${left}`, Math.min(left, POOL_SIZE)];
    await service.createPool(name, size);
    await service.untilIdle(name, size, 'runningReplicas');
    bench.say(`  ${count - left + size} of ${count} run`);
  }
};

const warmPairs = async (
  bench: Bench,
  sides: { readonly ours: () => Promise<number>; readonly theirs: () => Promise<number> },
): Promise<{ readonly ours: readonly number[]; readonly theirs: readonly number[] }> => {
  for (let turn = 0; turn < WARM_UP; turn += 1) {
    await sides.ours();
    await sides.theirs();
  }
  return await inPairs(bench, sides);
};

const pageOf = (bench: Bench, daemon: Daemon, path: string) => async (): Promise<number> =>
  quantile((await asked(bench, daemon, { path, times: PAGES })).latencies, 0.5);

/** One after the other; by the admin where the path is an admin's. */
const asked = async (
  bench: Bench,
  { service, dataDir }: Daemon,
  { path, times }: { readonly path: string; readonly times: number },
): Promise<LoadResult> => {
  const ask: Ask = {
    method: 'GET',
    path,
    key: readFileSync(join(dataDir, 'keys/admin.key'), 'utf8').trim(),
  };
  const asks = Array.from({ length: times }, () => ask);
  const result = await bench.load.closed(
    service.port,
    path.startsWith('/debug/') ? asks : service.keyed(asks),
    1,
  );
  expectAll(result, 200);
  return result;
};
