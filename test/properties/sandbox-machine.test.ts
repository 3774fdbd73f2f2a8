import { expect } from 'chai';
import fc from 'fast-check';
import { check } from './check.ts';
import { OUTCOMES } from './sandbox-store.ts';
import { SandboxWorld, type Step } from './sandbox-world.ts';

const to = fc.integer({ min: 0, max: 1 });
const pick = fc.nat({ max: 7 });
const timeout = fc.constantFrom(0, 0, 3_000, 9_000);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('carry out'),
      pick,
      outcome: fc.oneof(fc.constant('answered'), fc.constantFrom(...OUTCOMES)),
    }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('answer'), pick, again: fc.boolean() }) },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('report'), to, age: fc.oneof(fc.constant(0), pick) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('process'),
      becomes: fc.constantFrom('available', 'available', 'unavailable', 'gone'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('claim'),
      to,
      idleTimeoutMs: timeout,
      maxLifetimeMs: timeout,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('retire', 'work begins', 'work ends', 'active'),
      to,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('end', 'crash'), to }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('amend'), to, idleTimeoutMs: timeout }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('bump') }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('lead'), by: to }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('deadline'), to }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('time'),
      ms: fc.constantFrom(1, 400, 1_000, 3_000, 15_000),
    }),
  },
);

const steps = fc.array(step, { maxLength: 70, size: 'max' });

/** A refused launch is checked while another lands. */
const READ_BEFORE_CREATION: Step[] = [
  { do: 'time', ms: 15_000 },
  { do: 'deadline', to: 0 },
  { do: 'time', ms: 1_000 },
  { do: 'carry out', pick: 0, outcome: 'failed' },
  { do: 'deadline', to: 0 },
  { do: 'answer', pick: 0, again: false },
  { do: 'carry out', pick: 3, outcome: 'answered' },
  { do: 'carry out', pick: 0, outcome: 'answered' },
  { do: 'answer', pick: 1, again: false },
  { do: 'carry out', pick: 0, outcome: 'failed' },
  { do: 'answer', pick: 1, again: false },
];

const aWorldAfter = (taken: readonly Step[]): SandboxWorld => {
  const world = new SandboxWorld();
  for (const one of taken) world.take(one);
  return world;
};

describe('the sandbox machine under any sequence of events', () => {
  it('keeps its promises at each step, leaves every waiting state, and ends on request', () => {
    check(
      fc.property(steps, (taken) => {
        const world = aWorldAfter(taken);
        world.calmDown();
        world.checkRest();
      }),
    );
  });

  it('ends on request in each state', () => {
    check(
      fc.property(steps, to, (taken, teller) => {
        const world = aWorldAfter(taken);
        const told = world.replica(teller);
        world.take({ do: 'end', to: teller });
        world.calmDown();
        world.checkRest();
        if (told) expect(world.store.isOver, 'nothing of it is left').to.equal(true);
      }),
      { examples: [[READ_BEFORE_CREATION, 0]] },
    );
  });

  it('sends few requests at a time to a store that accepts no writes', () => {
    check(
      fc.property(steps, (taken) => {
        expect(aWorldAfter(taken).refuseWrites(), 'calls in one moment').to.be.at.most(20);
      }),
    );
  });
});
