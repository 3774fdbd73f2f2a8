import { createHash } from 'node:crypto';
import type { Suite, Test } from 'mocha';

/** Keeps one test in so many. */
const ONE_IN = 4;

/** Tests that judge what all tests before them did. */
const ofAllTests = new WeakSet<Test>();

/**
 * Defines suites of a contract for an implementation on which all their tests cost much. Keeps a
 * share of the tests, at least one of each suite; all with TEST_LONG=1. Another implementation
 * runs all of them each time.
 *
 * The full title decides, so each run keeps the same tests. Each implementation keeps others,
 * because its name is in the title. No test may need an earlier one: see `needsAllTests`.
 */
export const sampled = (define: () => void): void => {
  const { suites } = suiteAround();
  const before = suites.length;
  define();
  if (process.env['TEST_LONG'] === '1') return;
  for (const suite of suites.slice(before)) keepAShare(suite);
};

/** Marks a test that fails unless all tests before it in its suite ran; `sampled` leaves it out. */
export const needsAllTests = (test: Test): void => {
  ofAllTests.add(test);
};

/** Mocha does not name the suite that is being defined; only a suite in it knows. */
const suiteAround = (): Suite => {
  const { parent } = describe('sampled', () => undefined);
  if (!parent) throw new Error('a suite that is defined has a parent');
  parent.suites.pop();
  return parent;
};

/** Mocha runs no hook of a suite that has no test. */
const keepAShare = (suite: Suite): void => {
  const all: Test[] = [];
  suite.eachTest((test) => all.push(test));
  const independent = all.filter((test) => !ofAllTests.has(test));
  const kept = new Set(
    independent
      .toSorted((a, b) => placeOf(a) - placeOf(b))
      .slice(0, Math.ceil(independent.length / ONE_IN)),
  );
  const prune = (from: Suite): void => {
    from.tests = from.tests.filter((test) => kept.has(test));
    for (const inner of from.suites) prune(inner);
  };
  prune(suite);
};

/** By chance, but the same each time. */
const placeOf = (test: Test): number =>
  createHash('sha256').update(test.fullTitle()).digest().readUInt32BE();
