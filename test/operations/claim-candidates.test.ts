import { expect } from 'chai';
import { IdleInstances } from '../../src/actors/idle-instances.ts';
import { SandboxIndex } from '../../src/actors/sandbox-index.ts';
import { Waiters } from '../../src/actors/waiters.ts';
import { ClaimCandidates } from '../../src/operations/claim-candidates.ts';
import { WaitingSeats } from '../../src/operations/waiting-seats.ts';
import { alice } from '../support/a-supervisor.ts';
import { eventually } from '../support/eventually.ts';
import { aCoordination } from '../support/a-coordination.ts';
import { quietLog } from '../support/quiet-log.ts';
import { TestClock } from '../support/test-clock.ts';

describe('what a claim tries for', () => {
  for (const turnMs of [400, 700, 1_200]) it(`is not said to be none while other claims hold, each for ${turnMs} ms, what was idle when it asked`, async () => {
    const clock = new TestClock();
    const index = new SandboxIndex();
    const waiters = new Waiters(clock);
    const idle = new IdleInstances({
      driver: { idle: async () => [] }, clock, log: quietLog, index, waiters, revisionOf: () => 'r1', ownBuckets: () => undefined, learn: () => undefined, freed: () => undefined,
    });
    for (const id of ['a', 'b', 'c']) {
      index.place({ id, status: 'Idle', poolUid: 'p', poolName: 'p', updateRevision: 'r1', owner: alice, createdAt: 1, claimedAt: undefined, availableAt: 1 });
    }
    const held = [idle.acquire('p'), idle.acquire('p'), idle.acquire('p')];
    const candidates = new ClaimCandidates(
      { supervisor: { idle, pools: { recordOf: () => undefined } }, coordination: aCoordination(clock), clock, seats: new WaitingSeats() },
      { pool: { uid: 'p', owner: alice }, owner: alice, waitMs: 0, signal: undefined },
    );
    let outcome: unknown;
    void candidates.next().then((none) => { outcome = { none }; }, (error: unknown) => { outcome = error; });
    await eventually(() => {
      // Another has it in the same moment.
      held.shift()?.[Symbol.dispose]();
      held.push(idle.acquire('p'));
      clock.advance(turnMs);
      return outcome !== undefined;
    }, 'it is answered');

    expect(outcome).to.have.property('code', 'UNAVAILABLE');
  });
});
