import { expect } from 'chai';
import fc from 'fast-check';
import { SCALE_UP_MODES } from '../../src/model/envs/autoscaling-group.ts';
import { checkAsync } from './check.ts';
import { SizingWorld, type SizingStep } from './sizing-world.ts';
import { runs } from '../support/harness/runs.ts';

/** Gives the same days each time. */
const SEED = 20_261_122;

const by = fc.nat({ max: 1 });
const to = fc.nat({ max: 1 });

const scaleUpPolicy = fc.record({
  mode: fc.constantFrom(...SCALE_UP_MODES),
  cooldownSeconds: fc.constantFrom(0, 10, 60),
  idleThresholdSeconds: fc.constantFrom(0, 10),
  idleZeroQuietWindowSeconds: fc.constantFrom(0, 60),
  saturationCooldownSeconds: fc.constantFrom(0, 30),
});
const scaleDownPolicy = fc.record({
  idleTimeoutSeconds: fc.constantFrom(0, 5, 20, 60),
  stabilizationSeconds: fc.constantFrom(0, 20),
  protectionWindowSeconds: fc.constantFrom(0, 10, 40),
});
const change = fc.record(
  {
    enabled: fc.constantFrom(true, true, true, false),
    minReplicas: fc.nat({ max: 2 }),
    maxReplicas: fc.constantFrom(3, 6, 14),
    scaleUpPolicy,
    scaleDownPolicy,
  },
  { requiredKeys: [] },
);

const step: fc.Arbitrary<SizingStep> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constant('claim'),
      by,
      to,
      principal: fc.nat({ max: 2 }),
      waitMs: fc.constantFrom(0, 0, 20_000),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('end'), pick: fc.nat({ max: 9 }) }) },
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constant('pass'),
      looks: fc.constantFrom(1, 2, 6, 16),
      ms: fc.constantFrom(300, 5_000, 5_000),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('group'), by, to, change }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('member'),
      by,
      to,
      least: fc.nat({ max: 2 }),
      most: fc.constantFrom(1, 4, 12),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('resize'), by, to, replicas: fc.nat({ max: 8 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('drop', 'add'), by, to }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('launches fail'), count: fc.constantFrom(1, 5) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('places'), free: fc.boolean() }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('fault'),
      by,
      of: fc.constantFrom('pools', 'envs'),
      fault: fc.constantFrom('conflict', 'unknown-landed', 'unknown-lost'),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom('lead', 'lead', 'follow', 'crash'), by }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('lag', 'catch up', 'catch up'), by }) },
);

describe('an env sized by its groups on two replicas', () => {
  const counted = { decisions: 0, applied: 0 };

  it('keeps its promises through demand, failures, edits, restarts, lost writes and two leaders', async function () {
    await checkAsync(
      fc.asyncProperty(
        fc.record({ shared: fc.boolean(), leaders: fc.constantFrom(1, 2) }),
        fc.array(step, { maxLength: 50, size: 'max' }),
        to,
        async (terms, taken, last) => {
          const world = await SizingWorld.make(terms);
          for (const one of taken) await world.take(one);
          await world.calmDown(last);
          counted.decisions += world.referee.decisions;
          counted.applied += world.referee.applied;
        },
      ),
      { numRuns: runs(100), seed: SEED },
    );
  });

  it('covers enough decisions', () => {
    expect(counted.decisions).to.be.above(10);
    expect(counted.applied).to.be.above(10);
  });
});
