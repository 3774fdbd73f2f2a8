import { expect } from 'chai';
import { IdleInstances } from '../../src/actors/sandbox/idle-instances.ts';
import type { Placement } from '../../src/actors/sandbox/sandbox-snapshot.ts';
import { SandboxIndex } from '../../src/actors/sandbox/sandbox-index.ts';
import { Waiters } from '../../src/actors/runtime/actor-host.ts';
import type { InstanceFact } from '../../src/model/sandbox.ts';
import { ClaimCandidates } from '../../src/actors/claim/claim-candidates.ts';
import { WaitingClaimLimit } from '../../src/actors/claim/waiting-claim-limit.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const idleOne = (id: string): Placement => ({
  id,
  status: 'Idle',
  poolUid: 'p',
  poolName: 'p',
  updateRevision: 'r1',
  owner: alice,
  createdAt: 1,
  claimedAt: undefined,
  availableAt: 1,
});

const fact = (id: string): InstanceFact => ({
  id,
  record: undefined,
  vitals: { kind: 'available', startedAt: 1 },
});

/**
 * A claim that does not wait, and finds what looks of at least so many say; nothing of it is
 * learned.
 */
const aClaim = (looks: (atLeast: number) => readonly InstanceFact[]) => {
  const clock = new TestClock();
  const index = new SandboxIndex();
  const idle = new IdleInstances({
    driver: { idle: async (_pool, _namespace, atLeast) => looks(atLeast) },
    clock,
    log: quietLog,
    index,
    waiters: new Waiters(clock),
    revisionOf: () => 'r1',
    ownBuckets: () => undefined,
    learn: () => undefined,
    freed: () => undefined,
  });
  const candidates = new ClaimCandidates(
    {
      supervisor: { idle, pools: { recordOf: () => undefined } },
      coordination: aCoordination(clock),
      clock,
      waitingLimit: new WaitingClaimLimit(),
    },
    { pool: { uid: 'p', owner: alice }, owner: alice, waitMs: 0, signal: undefined },
  );
  return { candidates, index, idle, clock };
};

describe('the candidates of a claim', () => {
  for (const turnMs of [400, 700, 1_200])
    it(`are not exhausted while other claims reserve idle ones for ${turnMs} ms each`, async () => {
      const { candidates, index, idle, clock } = aClaim(() => []);
      for (const id of ['a', 'b', 'c']) index.place(idleOne(id));
      const held = [idle.acquire('p'), idle.acquire('p'), idle.acquire('p')];
      let outcome: unknown;
      void candidates.next().then(
        (none) => {
          outcome = { none };
        },
        (error: unknown) => {
          outcome = error;
        },
      );
      await eventually(() => {
        // Another has it in the same moment.
        held.shift()?.release();
        held.push(idle.acquire('p'));
        clock.advance(turnMs);
        return outcome !== undefined;
      }, 'it is answered');

      expect(outcome).to.have.property('code', 'UNAVAILABLE');
    });

  it('are read again if other claims took all that the first read found', async () => {
    const asked: number[] = [];
    const { candidates, index } = aClaim((atLeast) => {
      asked.push(atLeast);
      if (atLeast === 1) return [fact('a')]; // another claim gets it at that moment
      index.place(idleOne('b')); // its Pod was not yet known to be ready
      return [fact('b')];
    });
    const candidate = await candidates.next();

    expect(asked).to.deep.equal([1, 2]);
    expect(candidate?.instance.id).to.equal('b');
    candidate?.instance.release();
  });

  it('are exhausted if a read finds none beyond those that other claims took', async () => {
    const { candidates } = aClaim((atLeast) =>
      atLeast <= 3
        ? [fact('a'), fact('b'), fact('c')].slice(0, atLeast)
        : [fact('a'), fact('b'), fact('c')],
    );
    expect(await candidates.next()).to.equal(undefined);
  });
});
