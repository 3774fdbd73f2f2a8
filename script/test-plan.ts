import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ON_OTHER_NODES, OTHER_NODES } from './other-nodes.ts';

/** For one mocha process. */
export interface Unit {
  readonly name: string;
  readonly files: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** If not the Node at hand. */
  readonly node?: number;
  /** Nothing else may run. */
  readonly alone?: boolean;
}

/** At most 8 minutes on two idle cores. Files are beginnings of paths below test/. */
export interface Slice {
  readonly name: string;
  /** No other command runs them. */
  readonly only?: readonly string[];
  /** In full, with `env`; other commands run a part. */
  readonly again?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly node?: number;
  readonly needs?: 'kubernetes' | 'real-node';
}

/** Contract suites run whole: test/support/harness/sampled.ts. */
const WHOLE = { TEST_LONG: '1' };

/** CI runs one a day, so all within a week. */
export const SLICES: readonly Slice[] = [
  ...[0, 1].map((n): Slice => ({
    name: `other-node-${n + 1}`,
    again: ON_OTHER_NODES,
    // Faults found by chance are the same on every Node.
    env: { TEST_RUNS: '0.25' },
    node: OTHER_NODES[n] ?? 0,
  })),
  {
    name: 'real-node',
    only: ['real-node/'],
    env: WHOLE,
    needs: 'real-node',
  },
  {
    name: 'drills',
    only: [
      'e2e/alert-drills',
      'e2e/runbooks.',
      'kubernetes/deployed.',
      'real-node/a-clean-machine.',
      'real-node/drills.',
      'real-node/replica',
    ],
    env: WHOLE,
    needs: 'real-node',
  },
  {
    name: 'faults',
    only: [
      'e2e/approval-kill-rounds.',
      'e2e/env-kill-rounds.',
      'e2e/fleet',
      'e2e/kill-rounds.',
      'kubernetes/chaos.',
      'kubernetes/fleet.',
      'replicas/alert-drills.',
    ],
    needs: 'kubernetes',
  },
  {
    name: 'generated',
    again: [
      'e2e/api.',
      'e2e/contract-e2b.',
      'http/hostile-requests.',
      'kubernetes/driver-contract.',
      'kubernetes/files.',
      'kubernetes/processes.',
      'kubernetes/record-store.',
      'properties/',
      'redis/coordination.',
      'redis/history.',
      'replicas/api.',
      'replicas/keys-and-quotas.',
      'replicas/pools-over-rest.',
      'replicas/templates-and-catalogue.',
      'simulation/',
    ],
    env: { ...WHOLE, TEST_RUNS: '2' },
    needs: 'kubernetes',
  },
  {
    name: 'clients',
    only: [
      'architecture/claim-path.',
      'e2e/compatible-readers.',
      'e2e/contract-code-interpreter.',
      'e2e/contract-e2b-python.',
      'e2e/documentation.',
      'e2e/newcomer',
      'http/console-browser.',
      'http/docs-page.',
    ],
  },
];

/** Need a control plane. */
const ON_KUBERNETES = ['kubernetes/', 'replicas/'];
/** Compares the whole machine before and after. */
const ALONE = ['real-node/a-clean-machine.'];
/** Long suites, the longest first, by number of processes. */
const PROCESSES: Readonly<Record<string, number>> = {
  e2e: 5,
  http: 3,
  embedded: 3,
  'real-node': 1,
  kubernetes: 4,
  replicas: 2,
  redis: 1,
  fleet: 1,
  k8s: 1,
  properties: 1,
  process: 1,
  script: 1,
  cli: 1,
  e2b: 1,
};
/** Other suites share what a process loads: some 4 s of processor time. */
const MOST_FILES = 60;

const TESTS = fileURLToPath(new URL('../test/', import.meta.url));

/** By path below test/. */
export const testFiles = (): readonly string[] =>
  readdirSync(TESTS, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .toSorted();

const startsWithOne = (file: string, beginnings: readonly string[]): boolean =>
  beginnings.some((beginning) => file.startsWith(beginning));

const onlyIn = (slice: Slice, file: string): boolean => {
  const longest = (each: Slice): number =>
    Math.max(0, ...(each.only ?? []).filter((b) => file.startsWith(b)).map((b) => b.length));
  return longest(slice) > 0 && SLICES.every((other) => longest(other) <= longest(slice));
};

export const usualFiles = (files = testFiles()): readonly string[] =>
  files.filter((file) => !isLong(file) && !startsWithOne(file, ON_KUBERNETES));

export const kubernetesFiles = (files = testFiles()): readonly string[] =>
  files.filter((file) => !isLong(file) && startsWithOne(file, ON_KUBERNETES));

const isLong = (file: string): boolean => SLICES.some((slice) => onlyIn(slice, file));

export const filesOf = (slice: Slice, files = testFiles()): readonly string[] =>
  files.filter((file) => onlyIn(slice, file) || startsWithOne(file, slice.again ?? []));

/** The same everywhere at that moment. */
export const sliceOf = (day: Date): Slice => {
  const newYear = Date.UTC(day.getUTCFullYear(), 0, 1);
  const dayOfYear = Math.floor((day.getTime() - newYear) / 86_400_000);
  return SLICES[dayOfYear % SLICES.length]!;
};

/** The longest first, so that both lanes end together. */
export const unitsOf = (
  files: readonly string[],
  more: Pick<Unit, 'env' | 'node'> = {},
): readonly Unit[] => {
  const suiteOf = (file: string): string => file.split('/')[0] ?? '';
  const beside = files.filter((file) => !startsWithOne(file, ALONE));
  const short = beside.filter((file) => PROCESSES[suiteOf(file)] === undefined);
  const alone = files.filter((file) => startsWithOne(file, ALONE));
  return [
    ...Object.entries(PROCESSES).flatMap(([suite, count]) =>
      inUnits(
        suite,
        beside.filter((file) => suiteOf(file) === suite),
        count,
      ),
    ),
    ...inUnits('short suites', short, Math.ceil(short.length / MOST_FILES)),
    ...(alone.length > 0 ? [{ name: 'the machine', files: paths(alone), alone: true }] : []),
  ].map((unit) => ({ ...unit, ...more }));
};

/** Neighbours by name often cost alike. */
const inUnits = (suite: string, files: readonly string[], most: number): readonly Unit[] => {
  const count = Math.min(most, files.length);
  return Array.from({ length: count }, (_, n) => ({
    name: count === 1 ? suite : `${suite} ${n + 1}/${count}`,
    files: paths(files.filter((_file, at) => at % count === n)),
  }));
};

const paths = (files: readonly string[]): readonly string[] =>
  files.map((file) => join(TESTS, file));
