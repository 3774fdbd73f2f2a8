import { type Mutant } from './mutant.ts';
import { blockAt } from './lua-mutants.ts';
import { runTests } from './test-run.ts';

/** Without a mutant. A line of the coverage's file. */
export interface FileCoverage {
  readonly file: string;
  readonly tests: readonly TestCoverage[];
  /** Code outside of functions ran, or ran in hooks. */
  readonly loaded: readonly string[];
  /** Mutants met before all tests of a suite. */
  readonly inHooks: readonly string[];
  /** `FILE:OFFSET` in Redis' scripts, in hooks. */
  readonly blocks: readonly string[];
  /** Failing tests count for nothing; `(all)` is the whole file. */
  readonly failed: readonly string[];
  readonly ms: number;
}
interface TestCoverage {
  readonly title: string;
  readonly ms: number;
  /** Mutants, and files of src/. */
  readonly met: readonly string[];
  readonly sources: readonly string[];
  readonly blocks?: readonly string[];
}

export interface Covering {
  readonly file: string;
  readonly titles: readonly string[];
  readonly ms: number;
}

const LIMITS = { processorS: 300, wallMs: 900_000 };

export const coverageOf = async (
  tree: string,
  file: string,
  { all, sample }: { readonly all: ReadonlyMap<string, string>; readonly sample: Set<string> },
): Promise<FileCoverage> => {
  const began = performance.now();
  const order = { files: [file], chosen: {}, without: [], limits: {}, bail: false };
  const outcome = await runTests(tree, order, LIMITS);
  const ms = Math.round(performance.now() - began);
  if (outcome.kind !== 'result') {
    console.log(`${file} can't be used: ${outcome.kind === 'late' ? 'no end' : outcome.why}`);
    return { file, ms, tests: [], loaded: [], inHooks: [], blocks: [], failed: ['(all)'] };
  }
  const { passed, failed, atLoad, inHooks, byTest, blocks } = outcome.result;
  for (const { title, error } of failed) console.log(`fails with no mutant: ${title}: ${error}`);
  const sourcesOf = (ids: readonly string[]): readonly string[] => [
    ...new Set(ids.flatMap((id) => all.get(id) ?? [])),
  ];
  const sampled = (ids: readonly string[]): readonly string[] => ids.filter((id) => sample.has(id));
  return {
    ...{ file, ms, blocks: blocks[''] ?? [] },
    tests: passed.map(({ title, ms: took }) => ({
      title,
      ms: took,
      met: sampled(byTest[title] ?? []),
      sources: sourcesOf(byTest[title] ?? []),
      blocks: blocks[title],
    })),
    loaded: sourcesOf([...atLoad, ...inHooks]),
    inHooks: sampled(inHooks),
    failed: failed.map(({ title }) => title),
  };
};

export const covering = (
  mutant: Mutant,
  coverage: readonly FileCoverage[],
  text: string,
): readonly Covering[] =>
  mutant.file.endsWith('.lua')
    ? ofScript(mutant, coverage, text)
    : ofCode(mutant, coverage, isStatic(mutant, coverage));

const ofScript = (
  { file, start }: Mutant,
  coverage: readonly FileCoverage[],
  text: string,
): readonly Covering[] => {
  const block = `${file}:${blockAt(text, start)}`;
  return coverage
    .map((each) =>
      chosenOf(each, ({ blocks = [] }) => each.blocks.includes(block) || blocks.includes(block)),
    )
    .filter(({ titles }) => titles.length > 0);
};

/** Loaded with the file: no test met it by itself. */
const isStatic = ({ id }: Mutant, coverage: readonly FileCoverage[]): boolean =>
  !coverage.some(
    ({ inHooks, tests }) => inHooks.includes(id) || tests.some(({ met }) => met.includes(id)),
  );

const ofCode = (
  { id, file }: Mutant,
  coverage: readonly FileCoverage[],
  atLoadOnly: boolean,
): readonly Covering[] => {
  if (!atLoadOnly)
    return coverage
      .map((each) => chosenOf(each, ({ met }) => each.inHooks.includes(id) || met.includes(id)))
      .filter(({ titles }) => titles.length > 0);
  const folder = file.slice(0, file.lastIndexOf('/') + 1);
  const ofFile = coverage.some(({ tests }) => tests.some(({ sources }) => sources.includes(file)));
  const meets = (source: string): boolean => (ofFile ? source === file : source.startsWith(folder));
  return coverage
    .filter(({ loaded }) => loaded.includes(file))
    .map((each) =>
      chosenOf(
        each,
        ({ sources }) => each.file.startsWith('test/machines/') || sources.some(meets),
      ),
    )
    .filter(({ titles }) => titles.length > 0);
};

const chosenOf = (
  { file, tests }: FileCoverage,
  isChosen: (test: TestCoverage) => boolean,
): Covering => {
  const chosen = tests.filter(isChosen);
  return {
    file,
    titles: [...new Set(chosen.map(({ title }) => title))],
    ms: chosen.reduce((sum, { ms }) => sum + ms, 0),
  };
};
