import { expect } from 'chai';
import fc from 'fast-check';
import { aGroup, aRule } from '../machines/autoscaling-examples.ts';
import { AutoscalingReplicas, type ReplicaStep } from './autoscaling-replicas.ts';
import { check } from './check.ts';
import { runs } from '../support/harness/runs.ts';

const by = fc.nat({ max: 1 });
const to = fc.nat({ max: 1 });

const group = fc
  .record({
    up: fc.record({
      mode: fc.constantFrom('Moderate', 'Aggressive'),
      cooldownSeconds: fc.constantFrom(0, 10),
      idleThresholdSeconds: fc.constantFrom(0, 5),
    }),
    down: fc.record({
      idleTimeoutSeconds: fc.constantFrom(5, 30),
      stabilizationSeconds: fc.constantFrom(0, 10),
      protectionWindowSeconds: fc.constantFrom(0, 10),
    }),
    enabled: fc.constantFrom(true, true, true, false),
    minReplicas: fc.nat({ max: 3 }),
    maxReplicas: fc.integer({ min: 3, max: 20 }),
  })
  .map((parts) => aGroup(parts));

const step: fc.Arbitrary<ReplicaStep> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant('carry out'),
      by,
      pick: fc.nat({ max: 5 }),
      answered: fc.constantFrom(true, true, false),
      done: fc.constantFrom(true, true, true, false),
    }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('look'), by }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('hear', 'lead', 'deadline'), by }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('follow', 'crash'), by }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constantFrom('claim', 'end', 'settle'), to }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('edit'), group }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('time'),
      ms: fc.constantFrom(300, 5_000, 10_000, 70_000),
    }),
  },
);

describe('two replicas that both believe to lead an autoscaling group', () => {
  let applied = 0;

  it('apply no decision twice, remove no running sandbox, and settle after any fault, delay or crash', () => {
    check(
      fc.property(group, fc.array(step, { maxLength: 80, size: 'max' }), (words, taken) => {
        const replicas = new AutoscalingReplicas(words, [
          aRule(),
          aRule({ name: 'b', scaleUpPriority: 1, maxReplicas: 5 }),
        ]);
        for (const one of [{ do: 'lead', by: 0 } as const, ...taken]) replicas.take(one);
        replicas.calmDown();
        applied += replicas.applied;
      }),
      { numRuns: runs(600) },
    );
  });

  it('cover enough decisions', () => {
    expect(applied).to.be.above(100);
  });
});
