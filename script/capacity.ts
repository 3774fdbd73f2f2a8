import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { planOf, type Demand, type Plan } from './capacity-plan.ts';

const HELP = `usage: script/capacity [OPTION...]

Says how many clusters, cores and how much memory so many sandboxes need, from the costs that script/bench measured
(docs/capacity.md names each). It knows nothing of the nodes that the sandboxes themselves run on.

  --sandboxes N   claimed at one time, over all clusters; 1000000
  --life SECONDS  how long one is claimed on average; 3600
  --idle N        idle for each hundred claimed; 10
  --replicas N    of the daemon, in each cluster; 3
  --pods N        that one cluster is to have at most; 100000
  --retention S   for how long history is kept (s); 86400
  --use PERCENT   how much of a core is to be used; 50
  --writes N      a second, that a cluster's control plane is taken to bear; 1000
  --help
`;

const DEFAULTS: Demand = {
  sandboxes: 1_000_000,
  life: 3_600,
  idle: 10,
  replicas: 3,
  pods: 100_000,
  retention: 86_400,
  use: 0.5,
  writes: 1_000,
};
const PAGE = fileURLToPath(new URL('../docs/capacity.md', import.meta.url));
const MARKS = ['<!-- by script/capacity -->', '<!-- end -->'] as const;

const SHOWN: readonly Partial<Demand>[] = [
  { sandboxes: 1_000, life: 300 },
  { sandboxes: 10_000, life: 600 },
  { sandboxes: 100_000, life: 1_800, pods: 110_000 },
  { sandboxes: 1_000_000, life: 3_600 },
  { sandboxes: 1_000_000, life: 3_600, pods: 25_000 },
  { sandboxes: 1_000_000, life: 300 },
  { sandboxes: 1_000_000, life: 300, pods: 15_000 },
];

const tableOf = (demands: readonly Demand[]): string => {
  const rows = demands.map((demand) => rowOf(demand, planOf(demand)));
  return [HEAD, HEAD.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
};

const HEAD = [
  'sandboxes',
  'mean life',
  'clusters',
  'instances of each',
  'claims/s of each',
  'writes/s',
  'cores: a replica; all; control plane',
  'memory of a replica',
  'start',
  'history in Redis',
  'fits',
];

const rowOf = ({ sandboxes, life, replicas }: Demand, plan: Plan): readonly string[] => [
  count(sandboxes),
  `${life} s`,
  count(plan.clusters),
  count(plan.instances),
  plan.claims.toFixed(1),
  count(plan.writes),
  `${plan.replicaCores.toFixed(2)}; ${plan.daemonCores.toFixed(1)} (${replicas}); ${plan.controlCores.toFixed(1)}`,
  `${count(plan.replicaMemory)} MiB`,
  `${plan.start.toFixed(1)} s`,
  `${count(plan.redisMemory)} MiB`,
  plan.misfits.length === 0 ? 'yes' : `no: ${plan.misfits.join('; ')}`,
];

const count = (value: number): string => Math.round(value).toLocaleString('en');

const pageWith = (table: string): string => {
  const page = readFileSync(PAGE, 'utf8');
  const [from, to] = MARKS.map((mark) => page.indexOf(mark));
  if (from === undefined || to === undefined || from < 0 || to < from)
    throw new Error(`${PAGE} has no place for the table`);
  return `${page.slice(0, from + MARKS[0].length)}\n${table}\n${page.slice(to)}`;
};

export const capacityPage = (): string =>
  pageWith(tableOf(SHOWN.map((part) => ({ ...DEFAULTS, ...part }))));

/** Limits, and divisors of typed numbers. */
const OPTIONS = {
  sandboxes: [1e9, 1],
  life: [1e9, 1],
  idle: [10_000, 1],
  replicas: [1_000, 1],
  pods: [1e9, 1],
  retention: [1e9, 1],
  use: [100, 100],
  writes: [1e6, 1],
} as const;

const demandOf = (values: Readonly<Record<string, unknown>>): Demand => {
  const given = Object.entries(OPTIONS).flatMap(([name, [most, unit]]) => {
    const text = values[name];
    if (text === undefined) return [];
    const value = Number(text);
    if (!(value > 0 && value <= most) && !(name === 'idle' && value === 0))
      throw new RangeError(`--${name}: a number up to ${most}`);
    return [[name, value / unit] as const];
  });
  return { ...DEFAULTS, ...Object.fromEntries(given) };
};

const main = (args: readonly string[]): number => {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      sandboxes: text,
      life: text,
      idle: text,
      replicas: text,
      pods: text,
      retention: text,
      use: text,
      writes: text,
      help: { type: 'boolean', short: 'h' },
    },
  });
  process.stdout.write(values.help ? HELP : `${tableOf([demandOf(values)])}\n`);
  return 0;
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    process.exitCode = main(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(
      `${error instanceof Error ? error.message : String(error)}\nscript/capacity --help says what there is\n`,
    );
    process.exitCode = 2;
  }
}
