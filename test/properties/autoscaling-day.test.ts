import { expect } from 'chai';
import fc from 'fast-check';
import { SCALE_UP_MODES } from '../../src/model/envs/autoscaling-group.ts';
import { aGroup, aRule } from '../machines/autoscaling-examples.ts';
import { AutoscalingDay, type DayStep } from './autoscaling-day.ts';
import { check } from './check.ts';
import { runs } from '../support/harness/runs.ts';

const to = fc.nat({ max: 2 });
const count = fc.constantFrom(1, 1, 2, 7);
const size = fc.nat({ max: 12 });

const group = fc
  .record({
    up: fc.record({
      mode: fc.constantFrom(...SCALE_UP_MODES),
      cooldownSeconds: fc.constantFrom(0, 10, 60),
      idleThresholdSeconds: fc.constantFrom(0, 10),
      idleZeroQuietWindowSeconds: fc.constantFrom(0, 60),
      saturationCooldownSeconds: fc.constantFrom(0, 120),
    }),
    down: fc.record({
      idleTimeoutSeconds: fc.constantFrom(0, 5, 60, 600),
      stabilizationSeconds: fc.constantFrom(0, 30, 300),
      protectionWindowSeconds: fc.constantFrom(0, 20, 120),
    }),
    maxReplicas: fc.constantFrom(4, 20, 100),
  })
  .map((parts) => aGroup(parts));

const rules = fc
  .array(
    fc.record({
      minReplicas: fc.nat({ max: 2 }),
      maxReplicas: size,
      scaleUpPriority: fc.nat({ max: 1 }),
      scaleDownPriority: fc.nat({ max: 1 }),
    }),
    { minLength: 1, maxLength: 3 },
  )
  .map((all) => all.map((parts, index) => aRule({ ...parts, name: 'abc'.charAt(index) })));

const step: fc.Arbitrary<DayStep> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constantFrom('claim', 'end'), to, count }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('settle'), to }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('break'),
      to,
      why: fc.constantFrom('unschedulable', 'start failures', undefined),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait'), to, waits: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('quota'),
      to,
      left: fc.constantFrom(0, 1, 5, undefined),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('bounds'), least: size, most: fc.nat({ max: 40 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('member bounds'),
      to,
      least: fc.nat({ max: 4 }),
      most: size,
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant('pass'), looks: fc.constantFrom(1, 1, 3, 30) }),
  },
);

describe('the autoscaling arithmetic through any day', () => {
  let [decisions, rests] = [0, 0];

  it('keeps its promises at each evaluation, and leaves no claim waiting while there is room', () => {
    check(
      fc.property(
        group,
        rules,
        fc.array(step, { maxLength: 40, size: 'max' }),
        to,
        (policy, members, taken, last) => {
          const day = new AutoscalingDay(policy, members);
          for (const one of taken) day.take(one);
          day.calmDown(last);
          decisions += day.decisions;
          rests += day.rests;
        },
      ),
      { numRuns: runs(400) },
    );
  });

  it('makes room for claims by shrinking other members if the quota is used up', () => {
    const day = new AutoscalingDay(
      {
        name: 'g',
        enabled: true,
        minReplicas: 0,
        maxReplicas: 4,
        scaleUpPolicy: {
          mode: 'Conservative',
          cooldownSeconds: 0,
          idleThresholdSeconds: 0,
          idleZeroQuietWindowSeconds: 0,
          saturationCooldownSeconds: 0,
        },
        scaleDownPolicy: {
          idleTimeoutSeconds: 0,
          stabilizationSeconds: 0,
          protectionWindowSeconds: 0,
        },
      },
      ['a', 'b', 'c'].map((name) => ({
        name,
        minReplicas: 0,
        maxReplicas: name === 'b' ? 1 : 0,
        scaleUpPriority: 0,
        scaleDownPriority: 0,
      })),
    );
    day.take({ do: 'claim', to: 1, count: 1 });
    day.take({ do: 'bounds', least: 1, most: 0 });
    day.take({ do: 'break', to: 1, why: 'unschedulable' });
    day.take({ do: 'quota', to: 0, left: 0 });
    day.take({ do: 'wait', to: 1, waits: true });
    day.take({ do: 'member bounds', to: 0, least: 0, most: 1 });
    day.take({ do: 'settle', to: 1 });
    day.take({ do: 'pass', looks: 30 });
  });

  it('covers enough decisions', () => {
    expect(decisions).to.be.above(100);
    expect(rests, 'and rests').to.be.above(100);
  });
});
