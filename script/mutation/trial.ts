import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { covering, type Covering, type FileCoverage } from './coverage.ts';
import type { Mutant } from './mutant.ts';
import { type Outcome, runTests } from './test-run.ts';
import type { Failure, Order } from './tests-in-tree.ts';

export type Status = 'caught' | 'survived' | 'timed out' | 'no coverage';
export interface Verdict {
  readonly status: Status;
  /** The test, or the number of passed ones. */
  readonly by: string;
  /** Others were not tried. */
  readonly quick?: true;
}

export interface Ground {
  readonly root: string;
  readonly tree: string;
  readonly coverage: readonly FileCoverage[];
  /** By title: passes alone without a mutant. */
  readonly soundAlone: Map<string, boolean>;
  /** Only the first two stages. */
  readonly quick: boolean;
}

/** A test may take this much longer than without a mutant. */
const TIMES_LONGER = 8;
const LEAST_LIMIT_MS = 5_000;
/** Typical on a busy machine. */
const LOADING_MS = 2_000;
/** Quick ones come first. */
const OWN_TESTS = 'test/machines/';
/** The quickest tests first. */
const STAGES_MS = [3_000, 15_000, 60_000, Infinity];
const QUICK_STAGES = 2;
const MOST_DOUBTS = 3;

/** Until a test fails. */
export const tryMutant = async (mutant: Mutant, ground: Ground): Promise<Verdict> => {
  const text = readFileSync(join(ground.root, mutant.file), 'utf8');
  const found = covering(mutant, ground.coverage, text);
  if (found.length === 0) return { status: 'no coverage', by: '' };
  const isScript = mutant.file.endsWith('.lua');
  const place = join(ground.tree, mutant.file);
  const change = text.slice(0, mutant.start) + mutant.replacement + text.slice(mutant.end);
  if (isScript) writeFileSync(place, change);
  try {
    const active = isScript ? {} : { mutant: mutant.id };
    for (const [nth, stage] of stagesOf(found).entries()) {
      if (stage.length === 0) continue;
      if (nth >= QUICK_STAGES && ground.quick)
        return { status: 'survived', by: 'the quick tests', quick: true };
      const verdict = await tryStage(stage, ground, active, () => {
        if (isScript) writeFileSync(place, text);
        return () => {
          if (isScript) writeFileSync(place, change);
        };
      });
      if (verdict) return verdict;
    }
  } finally {
    if (isScript) writeFileSync(place, text);
  }
  const tests = found.reduce((sum, { titles }) => sum + titles.length, 0);
  return { status: 'survived', by: `${tests} tests of ${found.length} files` };
};

const stagesOf = (found: readonly Covering[]): readonly (readonly Covering[])[] => {
  const stages: Covering[][] = STAGES_MS.map(() => []);
  let sum = 0;
  const foreign = ({ file }: Covering): number => (file.startsWith(OWN_TESTS) ? 0 : 1);
  for (const each of found.toSorted((a, b) => foreign(a) - foreign(b) || a.ms - b.ms)) {
    sum += each.ms + (sum === 0 ? 0 : LOADING_MS / 4);
    stages[STAGES_MS.findIndex((most) => sum <= most)]?.push(each);
  }
  return stages;
};

type Active = { readonly mutant?: string };
/** Removes the mutant; the returned function restores it. */
type Pause = () => () => void;

const tryStage = async (
  stage: readonly Covering[],
  ground: Ground,
  active: Active,
  pause: Pause,
): Promise<Verdict | undefined> => {
  const without: string[] = [];
  for (let doubts = 0; doubts <= MOST_DOUBTS; doubts += 1) {
    let outcome = await run(stage, ground, { ...active, without });
    // all of this may have been stopped for a while
    if (outcome.kind === 'late') outcome = await run(stage, ground, { ...active, without });
    if (outcome.kind === 'late') return { status: 'timed out', by: namesOf(stage) };
    const failure = outcome.kind === 'result' ? outcome.result.failed[0] : undefined;
    if (outcome.kind === 'result' && !failure) return undefined;
    if (!failure) {
      const why = outcome.kind === 'crashed' ? outcome.why : '';
      return { status: 'caught', by: `no end of its own: ${why.slice(-200)}` };
    }
    const alone = await holdsAlone(failure, stage, { ground, active, pause });
    if (alone) return { status: failure.late ? 'timed out' : 'caught', by: failure.title };
    without.push(failure.test ?? failure.title);
  }
  return undefined;
};

/** The test passes alone without the mutant, and a late one is late again. */
const holdsAlone = async (
  { title, test = title, late }: Failure,
  stage: readonly Covering[],
  { ground, active, pause }: { ground: Ground; active: Active; pause: Pause },
): Promise<boolean> => {
  const named = stage.find(({ titles }) => titles.includes(test));
  const own = named ? [{ ...named, titles: [test] }] : stage;
  let sound = ground.soundAlone.get(test);
  if (sound === undefined) {
    const goOn = pause();
    const outcome = await run(own, ground, { without: [] });
    goOn();
    sound = outcome.kind === 'result' && outcome.result.failed.length === 0;
    ground.soundAlone.set(test, sound);
    if (!sound) console.log(`counts for nothing, fails alone with no mutant: ${test}`);
  }
  if (!sound || !late) return sound;
  const again = await run(own, ground, { ...active, without: [] });
  return again.kind !== 'result' || again.result.failed.length > 0;
};

const run = (
  stage: readonly Covering[],
  { tree, coverage }: Ground,
  { without, ...active }: Active & { readonly without: readonly string[] },
): Promise<Outcome> => {
  const expected = stage.reduce((sum, { ms }) => sum + ms + LOADING_MS, 0);
  const order: Order = {
    ...{ ...active, without, bail: true },
    files: stage.map(({ file }) => file),
    chosen: Object.fromEntries(stage.map(({ file, titles }) => [file, titles])),
    limits: Object.fromEntries(
      coverage
        .filter(({ file }) => stage.some((each) => each.file === file))
        .flatMap(({ tests }) => tests)
        .map(({ title, ms }) => [title, Math.max(LEAST_LIMIT_MS, ms * TIMES_LONGER)]),
    ),
  };
  return runTests(tree, order, {
    processorS: 8 + expected / 1_000,
    wallMs: 60_000 + 5 * expected,
  });
};

const namesOf = (stage: readonly Covering[]): string => stage.map(({ file }) => file).join(', ');
