/** Changes one thing in the code, and looks whether a test fails. See `script/mutants --help`. */
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { coverageOf, type FileCoverage } from './mutation/coverage.ts';
import { luaMutants } from './mutation/lua-mutants.ts';
import {
  type Change,
  FOLDERS,
  keyOf,
  type Mutant,
  sampleInTurn,
  sampleOf,
} from './mutation/mutant.ts';
import { type Tried, report, shownMutant } from './mutation/report.ts';
import { endAll } from './mutation/test-run.ts';
import { filesOf, makeTree, writeScripts } from './mutation/tree.ts';
import { type Ground, tryMutant } from './mutation/trial.ts';
import { typescriptMutants } from './mutation/typescript-mutants.ts';

/**
 * By paths below test/: suites of these folders, and of what runs a supervisor or Redis' scripts
 * without a daemon.
 */
const SUITES = [
  ...['machines/', 'model/', 'actors/', 'operations/', 'properties/', 'redis/'],
  ...['e2b/create-waits.', 'e2b/images.', 'http/fleet-claim-notes.', 'k8s/reads-of-a-cycle.'],
  'metrics/what-is-told.',
];
/** They test the scripts' text, not what it does. */
const NOT_OF_CONDUCT = ['test/redis/scripts.test.ts'];

const { values: options } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '500' },
    only: { type: 'string' },
    of: { type: 'string', default: '.' },
    into: { type: 'string', default: 'coverage/mutants' },
    jobs: { type: 'string', default: '2' },
    list: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
  },
});
const root = resolve(options.of);
const into = resolve(options.into);

const main = async (): Promise<void> => {
  const code = filesOf(root, 'src/machines', 'src/actors/claim').filter(isCode);
  const { mutants: ofCode, sources } = await typescriptMutants(root, code);
  const all = [...ofCode, ...luaMutants(root, filesOf(root, 'src/redis/lua').filter(isScript))];
  const { sample, gone } = chosenOf(all);
  if (options.list) {
    for (const mutant of sample) console.log(shownMutant(mutant));
    return;
  }
  mkdirSync(into, { recursive: true });
  isOfTheseSources(sample);
  const tried = new Set(
    results()
      .filter(({ quick }) => options.quick || quick === undefined)
      .map(keyOf),
  );
  // in turn, so that an interrupted run has results for each folder
  const left = sampleInTurn(sample).filter((mutant) => !tried.has(keyOf(mutant)));
  if (left.length > 0) {
    const trees = treesOf(sources);
    const coverage = await measured(trees, all, sample);
    await tryAll(left, trees, coverage);
    for (const tree of trees) rmSync(tree, { recursive: true, force: true });
  }
  console.log(report(all, results(), gone));
};

const isCode = (file: string): boolean => file.endsWith('.ts');
const isScript = (file: string): boolean => file.endsWith('.lua');

/** `gone`: changes of a file of results that the code lacks. */
const chosenOf = (
  all: readonly Mutant[],
): { readonly sample: readonly Mutant[]; readonly gone: readonly Change[] } => {
  if (options.only === undefined)
    return { sample: sampleOf(all, Number(options.count), Number(options.seed)), gone: [] };
  const changes = parsed<Change>(readFileSync(options.only, 'utf8'));
  const byKey = new Map(all.map((mutant) => [keyOf(mutant), mutant]));
  return {
    sample: changes.flatMap((change) => byKey.get(keyOf(change)) ?? []),
    gone: changes.filter((change) => !byKey.has(keyOf(change))),
  };
};

/** Only the same sample, sources and tests can be continued. */
const isOfTheseSources = (sample: readonly Mutant[]): void => {
  const hash = createHash('sha256').update(process.env['TEST_RUNS'] ?? '1');
  for (const mutant of sample) hash.update(keyOf(mutant));
  for (const file of filesOf(root, 'src', 'test', 'local-cluster'))
    hash.update(file).update(readFileSync(join(root, file)));
  const [file, digest] = [join(into, 'of'), hash.digest('hex')];
  if (existsSync(file) && readFileSync(file, 'utf8') !== digest)
    throw new Error(`${into} has results of other sources, tests or mutants: name another folder`);
  writeFileSync(file, digest);
};

const treesOf = (sources: ReadonlyMap<string, string>): readonly string[] => {
  const names = Array.from({ length: Number(options.jobs) }, (_, n) => join(into, `tree-${n}`));
  const [first = join(into, 'tree-0'), ...others] = names;
  console.log(`making ${first}`);
  makeTree(root, first, sources);
  for (const other of others) {
    rmSync(other, { recursive: true, force: true });
    cpSync(first, other, { recursive: true });
  }
  return names;
};

const measured = async (
  trees: readonly string[],
  all: readonly Mutant[],
  sample: readonly Mutant[],
): Promise<readonly FileCoverage[]> => {
  const known = new Set(linesOf<FileCoverage>('coverage.jsonl').map(({ file }) => file));
  const files = filesOf(root, 'test').filter(
    (file) =>
      file.endsWith('.test.ts') &&
      SUITES.some((beginning) => file.startsWith(`test/${beginning}`)) &&
      !NOT_OF_CONDUCT.includes(file),
  );
  const ids = {
    all: new Map(all.map(({ id, file }) => [id, file])),
    sample: new Set(sample.map(({ id }) => id)),
  };
  for (const tree of trees) writeScripts(root, tree, { marks: true });
  await shared(
    files.filter((file) => !known.has(file)),
    trees,
    async (file, tree) => append('coverage.jsonl', await coverageOf(tree, file, ids)),
  );
  for (const tree of trees) writeScripts(root, tree, { marks: false });
  return linesOf<FileCoverage>('coverage.jsonl');
};

const tryAll = async (
  left: readonly Mutant[],
  trees: readonly string[],
  coverage: readonly FileCoverage[],
): Promise<void> => {
  const soundAlone = new Map<string, boolean>();
  let done = 0;
  await shared(left, trees, async (mutant, tree) => {
    const ground: Ground = { root, tree, coverage, soundAlone, quick: options.quick };
    const began = performance.now();
    const verdict = await tryMutant(mutant, ground);
    const ms = Math.round(performance.now() - began);
    append('results.jsonl', { ...mutant, ...verdict, ms });
    done += 1;
    console.log(`${done}/${left.length} ${verdict.status} ${shownMutant(mutant)} (${ms} ms)`);
  });
};

/** One at a time in each tree. */
const shared = async <T>(
  items: readonly T[],
  trees: readonly string[],
  act: (item: T, tree: string) => Promise<void>,
): Promise<void> => {
  const waiting = [...items];
  await Promise.all(
    trees.map(async (tree) => {
      for (let item = waiting.shift(); item !== undefined; item = waiting.shift())
        await act(item, tree);
    }),
  );
};

const append = (file: string, line: object): void => {
  appendFileSync(join(into, file), `${JSON.stringify(line)}\n`);
};

/** The latest for each mutant. */
const results = (): readonly Tried[] => [
  ...new Map(linesOf<Tried>('results.jsonl').map((line) => [keyOf(line), line])).values(),
];

const linesOf = <T>(file: string): readonly T[] =>
  existsSync(join(into, file)) ? parsed<T>(readFileSync(join(into, file), 'utf8')) : [];

const parsed = <T>(text: string): readonly T[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    endAll();
    process.exit(signal === 'SIGINT' ? 130 : 143);
  });
try {
  for (const folder of FOLDERS)
    if (!existsSync(join(root, folder))) throw new Error(`${root} has no ${folder}`);
  await main();
} finally {
  endAll();
}
