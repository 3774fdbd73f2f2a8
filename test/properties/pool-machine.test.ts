import fc from 'fast-check';
import type { PoolPolicy } from '../../src/machines/pool/arithmetic.ts';
import { check } from './check.ts';
import { PoolWorld, type Step } from './pool-world.ts';

const pick = fc.nat({ max: 9 });
const turn = fc.nat({ max: 3 });
const replicas = fc.integer({ min: 0, max: 6 });
const revision = fc.constantFrom('r1', 'r2', 'r3');

const policy: fc.Arbitrary<PoolPolicy> = fc.record({
  replicaSemantics: fc.constantFrom('total', 'idle'),
  refill: fc.record({
    perSecond: fc.constantFrom(0.5, 1, 3, 7),
    burst: fc.integer({ min: 1, max: 5 }),
    inFlight: fc.integer({ min: 1, max: 4 }),
    places: fc.constantFrom(undefined, { first: 1, most: 1 }),
  }),
  breaker: fc.record({
    failures: fc.integer({ min: 1, max: 3 }),
    firstPauseMs: fc.constant(1_000),
    maxPauseMs: fc.constant(5_000),
  }),
});

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('carry out'),
      pick,
      outcome: fc.constantFrom('done', 'done', 'done', 'refused', 'silent'),
    }),
  },
  { weight: 10, arbitrary: fc.record({ do: fc.constant('move'), pick, turn }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('found'),
      at: fc.constantFrom('starting', 'idle', 'unavailable', 'running', 'stopping', 'failed'),
      revision,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('edit'), replicas }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('revise'),
      revision,
      maxUnavailable: fc.constantFrom('1', '2', '9', '25%', '60%', '100%'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stale record'), age: turn }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('lead') }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('follow', 'restart') }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('deadline', 'next deadline') }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('time'), ms: fc.constantFrom(1, 150, 1_000, 4_000) }),
  },
);
const deletion: fc.Arbitrary<Step> = fc.record({
  do: fc.constant('delete'),
  how: fc.constantFrom('keep-running', 'force'),
});
const steps = fc.array(step, { maxLength: 60, size: 'max' });
const deletingSteps = fc.array(
  fc.oneof({ weight: 30, arbitrary: step }, { weight: 1, arbitrary: deletion }),
  { maxLength: 40, size: 'max' },
);

describe('the pool machine under any sequence of events', function () {
  it('counts correctly, launches and replaces within all limits, and ends full, at its last revision', () => {
    check(
      fc.property(policy, replicas, steps, (rules, wanted, taken) => {
        const world = new PoolWorld(rules, wanted);
        for (const one of [{ do: 'lead' } as const, ...taken]) world.take(one);
        world.calmDown();
        world.checkRest();
      }),
    );
  });

  it('is removed after its deletion, and launches nothing in the meantime', () => {
    check(
      fc.property(
        policy,
        replicas,
        steps,
        deletion,
        deletingSteps,
        (rules, wanted, before, deleted, after) => {
          const world = new PoolWorld(rules, wanted);
          for (const one of [{ do: 'lead' } as const, ...before, deleted, ...after])
            world.take(one);
          world.calmDown();
          world.checkRest();
        },
      ),
    );
  });
});
