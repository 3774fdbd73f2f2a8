import { expect } from 'chai';
import fc from 'fast-check';
import { ALICE } from '../machines/examples.ts';
import { SlowMachine } from '../machines/slow-machine.ts';
import { runs } from '../support/harness/runs.ts';
import { check } from './check.ts';

/** Two slow ones are late if they start together. */
const WORK_MS = { quick: 300, slow: 6_000, never: Number.POSITIVE_INFINITY };
const ONE_PROCESSOR = { processors: 1, workMs: 0, startupTimeoutMs: 10_000 };
const HOUR_MS = 3_600_000;

const places = fc.record({
  first: fc.integer({ min: 1, max: 12 }),
  most: fc.integer({ min: 12, max: 64 }),
});
const pool = (kinds: readonly (keyof typeof WORK_MS)[]) =>
  fc.record({
    kind: fc.constantFrom(...kinds),
    owner: fc.constantFrom('alice', 'bob', 'carol').map((user) => ({ ...ALICE, user })),
    replicas: fc.integer({ min: 1, max: 6 }),
  });
const someOf = (...kinds: readonly (keyof typeof WORK_MS)[]) =>
  fc.array(pool(kinds), { minLength: 1, maxLength: 6 });
type Pools = readonly (typeof pool extends (...kinds: never) => fc.Arbitrary<infer T>
  ? T
  : never)[];

const onOneProcessor = (first: fc.Arbitrary<Pools>, others: fc.Arbitrary<Pools>) =>
  fc.property(places, first, others, fc.boolean(), (policy, awaited, rest, isLast) => {
    const pools = isLast ? [...rest, ...awaited] : [...awaited, ...rest];
    const machine = new SlowMachine(
      { ...ONE_PROCESSOR, places: policy },
      pools.map((one) => ({ ...one, workMs: WORK_MS[one.kind] })),
    );
    const indexes = awaited.map((_, index) => index + (isLast ? rest.length : 0));

    expect(machine.filledAfterMs(HOUR_MS, indexes)).to.be.below(HOUR_MS);
  });

describe('start slots for any set of pools', function () {
  it('let every pool fill whose instances become ready by themselves', () => {
    check(onOneProcessor(someOf('slow'), someOf('quick', 'slow')), { numRuns: runs(100) });
  });

  it('let pools fill next to others whose instances never become ready', () => {
    check(onOneProcessor(someOf('quick', 'slow'), someOf('never')), { numRuns: runs(100) });
  });
});
