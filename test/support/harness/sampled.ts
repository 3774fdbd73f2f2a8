import { createHash } from 'node:crypto';
import type { Suite, Test } from 'mocha';

/** Keeps one test in so many. */
const ONE_IN = 4;

const ofAllTests = new WeakSet<Test>();

/**
 * Defines suites of a contract for a costly implementation. Keeps a share of the tests, at least
 * one per suite; all with TEST_LONG=1. Titles decide, so runs keep the same tests, and
 * implementations different ones. No test may need an earlier one, except by `needsAllTests`.
 */
export const sampled = (define: () => void): void => {
  const { suites } = suiteAround();
  const before = suites.length;
  define();
  if (process.env['TEST_LONG'] === '1') return;
  for (const suite of suites.slice(before)) keepAShare(suite);
};

/** The test needs all earlier tests of its suite; `sampled` leaves it out. */
export const needsAllTests = (test: Test): void => {
  ofAllTests.add(test);
};

/** Mocha does not name the suite being defined; only a suite in it knows. */
const suiteAround = (): Suite => {
  const { parent } = describe('sampled', () => undefined);
  if (!parent) throw new Error('a suite that is defined has a parent');
  parent.suites.pop();
  return parent;
};

/** Mocha runs no hook of a suite without tests. */
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

/** Pseudorandom, but stable. */
const placeOf = (test: Test): number =>
  createHash('sha256').update(test.fullTitle()).digest().readUInt32BE();
