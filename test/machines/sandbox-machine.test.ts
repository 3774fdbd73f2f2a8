import { expect } from 'chai';
import {
  CLAIM_REPEAT_MS,
  LAUNCH_MS,
  LEADER_MS,
  OVERRUN_MS,
  RETRY_MS,
  STEADY_MS,
} from '../../src/machines/sandbox/arithmetic.ts';
import type { SandboxEvent } from '../../src/machines/sandbox/events.ts';
import type { Claim, EndReason, InstanceRecord, Vitals } from '../../src/model/sandbox.ts';
import {
  aLaunchOrder,
  aClaim,
  aFact,
  aRecord,
  ASandbox,
  AVAILABLE,
  GONE,
  noRecord,
  STARTING,
  T0,
  UNAVAILABLE,
} from './examples.ts';

const fact = (
  record: InstanceRecord | undefined,
  vitals: Vitals = AVAILABLE,
  now = T0 + 10,
): SandboxEvent => ({ type: 'FACT', fact: record ? aFact(record, vitals) : noRecord(vitals), now });
const deadline = (now: number): SandboxEvent => ({ type: 'DEADLINE', now });
const CLAIM: SandboxEvent = {
  type: 'CLAIM',
  claim: aClaim({ claimedAt: T0 }),
  now: T0,
  until: T0 + 5_000,
};
const END: SandboxEvent = { type: 'END', reason: 'deleted', now: T0 + 20 };
const RETIRE: SandboxEvent = { type: 'RETIRE', now: T0 + 20 };
const CLAIM_OUTCOME_UNKNOWN: SandboxEvent = { type: 'CLAIM_OUTCOME_UNKNOWN', now: T0 + 10 };
const LEADING: SandboxEvent = { type: 'LEADING', now: T0 + 20 };
const NOT_LEADING: SandboxEvent = { type: 'NOT_LEADING', now: T0 + 20 };
const expired = (reason: EndReason, now: number): SandboxEvent => ({
  type: 'EXPIRED',
  reason,
  now,
});
const EXITED: Vitals = { kind: 'gone', exitCode: 3, reason: 'exited' };
const claimed = (terms: Partial<Claim> = {}): InstanceRecord =>
  aRecord({ revision: '2', state: 'claimed', claim: aClaim({ claimedAt: T0, ...terms }) });
const ending = (): InstanceRecord => ({
  ...claimed(),
  revision: '3',
  state: 'ending',
  end: { reason: 'deleted', exitCode: null },
});
const CLAIMED: SandboxEvent = { type: 'CLAIMED', record: claimed(), now: T0 + 10 };
const running = (terms: Partial<Claim> = {}): ASandbox => ASandbox.found(claimed(terms));

const BROKEN: Vitals = {
  kind: 'unavailable',
  startedAt: T0,
  reason: 'not ready',
  endedContainers: { agent: 'exit code 1' },
};
const MAIN_ENDED: Vitals = { kind: 'gone', exitCode: 3, reason: 'exited', remains: true };

describe('a sandbox of several containers', () => {
  const steady = (): ASandbox => ASandbox.found().send(deadline(T0 + STEADY_MS));

  it('is retired if a container ends while it is idle', () => {
    const sandbox = steady().send(fact(aRecord(), BROKEN, T0 + STEADY_MS + 1));
    expect(sandbox.last).to.deep.include({ type: 'retire', asked: false });
    expect(sandbox.context.end).to.deep.equal({ reason: 'container-ended', exitCode: null });
    expect(sandbox.send(NOT_LEADING).state, 'left to who leads').to.equal(
      'stopping.awaitingLeader',
    );
  });

  it('fails to start if a container ends before it is ready, or soon after', () => {
    const reason = 'its container "agent" has ended: exit code 1';
    const booting = ASandbox.born().send({ type: 'LAUNCHED', record: aRecord(), now: T0 });
    booting.send(fact(aRecord(), { kind: 'starting', endedContainers: { agent: 'exit code 1' } }));
    const young = ASandbox.born().send(
      { type: 'LAUNCHED', record: aRecord(), now: T0 },
      fact(aRecord()),
      fact(aRecord(), BROKEN, T0 + 20),
    );
    for (const { intents } of [booting, young])
      expect(intents[1]).to.deep.equal({ type: 'report-start', outcome: 'failed', reason });
  });

  it('runs on after a claim if another container ends, even if the claim came first', () => {
    expect(running().send(fact(claimed(), BROKEN)).state).to.equal('running');
    const sandbox = steady().send(
      fact(aRecord(), BROKEN),
      { type: 'RETIRE_OUTCOME_UNKNOWN', now: T0 + 20 },
      fact(claimed(), BROKEN),
    );
    expect(sandbox.state).to.equal('running');
    expect(sandbox.context.end).to.equal(undefined);
  });

  it('ends with its main container, and closes once the others are gone', () => {
    const sandbox = running().send(fact(claimed(), MAIN_ENDED, T0 + 50));
    expect(sandbox.last).to.deep.equal({
      type: 'release',
      end: { reason: 'exited', exitCode: 3 },
      asked: false,
    });
    sandbox.send(
      { type: 'RELEASED', now: T0 + 60 },
      fact(claimed(), { ...MAIN_ENDED, endsBy: T0 + 5_000 }, T0 + 70),
    );
    expect(sandbox.state).to.equal('stopping.waiting');
    expect(sandbox.context.deadline, 'no look before their grace is over').to.equal(
      T0 + 5_000 + OVERRUN_MS,
    );
    sandbox.send(fact(claimed(), GONE, T0 + 4_000));
    expect(sandbox.last).to.have.nested.property('finished.terminatedAt', T0 + 50);
  });

  it('ends with its main container, also if nobody claimed it', () => {
    const sandbox = steady().send(fact(aRecord(), MAIN_ENDED));
    expect(sandbox.last).to.deep.include({ type: 'retire' });
    expect(sandbox.send({ type: 'RETIRED', now: T0 + 60 }).state).to.equal('stopping.waiting');
    expect(sandbox.send(fact(undefined, GONE)).state).to.equal('stopping.closing');
  });
});

describe('a launched sandbox', () => {
  it('becomes idle when it is ready, and reports its start after it has lived for a while', () => {
    const sandbox = ASandbox.born().send(
      { type: 'LAUNCHED', record: aRecord(), now: T0 },
      fact(aRecord(), STARTING),
    );
    expect(sandbox.state).to.equal('starting.booting');
    sandbox.send(fact(aRecord()), deadline(T0 + 9 + STEADY_MS));
    expect(sandbox.state).to.equal('idle.available');
    expect(sandbox.intents.map(({ type }) => type)).to.deep.equal(['launch']);
    sandbox.send(deadline(T0 + 10 + STEADY_MS));
    expect(sandbox.last).to.include({ type: 'report-start', outcome: 'started' });
    expect(sandbox.context.deadline).to.equal(undefined);
  });

  it('reports its start early if it is claimed', () => {
    const sandbox = ASandbox.born().send(
      { type: 'LAUNCHED', record: aRecord(), now: T0 },
      fact(aRecord()),
      CLAIM,
    );
    expect(sandbox.intents.slice(1).map(({ type }) => type)).to.deep.equal([
      'report-start',
      'claim',
    ]);
  });

  it('reports a failed start only if its process ends soon after it began', () => {
    const born = (): ASandbox =>
      ASandbox.born().send({ type: 'LAUNCHED', record: aRecord(), now: T0 }, fact(aRecord()));
    expect(
      born()
        .send(fact(aRecord(), EXITED, T0 + 20))
        .intents.slice(1),
    ).to.deep.equal([
      { type: 'report-start', outcome: 'failed', reason: 'exited' },
      { type: 'retire', seen: '1', namespace: 'alpha', asked: false },
    ]);
    const steady = born().send(
      deadline(T0 + 10 + STEADY_MS),
      fact(aRecord(), EXITED, T0 + 11 + STEADY_MS),
    );
    expect(
      steady.intents.slice(1).map((intent) => ('outcome' in intent ? intent.outcome : intent.type)),
    ).to.deep.equal(['started', 'retire']);
  });

  it('is launched again under the same id while the outcome of its launch is unknown', () => {
    const launchOrder = aLaunchOrder({ id: 'one' });
    const sandbox = ASandbox.born(launchOrder).send(deadline(T0 + LAUNCH_MS));
    expect(sandbox.state).to.equal('starting.ordered.uncertain');
    sandbox.send(deadline(T0 + LAUNCH_MS + RETRY_MS));
    expect(sandbox.intents).to.deep.equal([
      { type: 'launch', launchOrder },
      { type: 'launch', launchOrder },
    ]);
  });

  it('continues under another leader only if its launch took effect', () => {
    const unlanded = ASandbox.born().send(NOT_LEADING);
    expect(unlanded.last).to.deep.equal({ type: 'look' });
    expect(unlanded.send(fact(undefined, GONE)).state).to.equal('completed');
    expect(ASandbox.born().send(NOT_LEADING, fact(aRecord(), STARTING)).state).to.equal(
      'starting.booting',
    );
  });

  it('is idle as soon as a fact shows so, even without an answer to its launch', () => {
    expect(ASandbox.born().send(fact(aRecord(), AVAILABLE)).state).to.equal('idle.available');
    expect(
      ASandbox.born().send({ type: 'LAUNCH_UNKNOWN', now: T0 }, fact(aRecord(), AVAILABLE), {
        type: 'LAUNCHED',
        record: aRecord(),
        now: T0,
      }).state,
    ).to.equal('idle.available');
    expect(ASandbox.born().send(fact(aRecord(), STARTING)).state).to.equal(
      'starting.ordered.launching',
    );
  });

  it('ends as refused if its launch is refused and it has no record', () => {
    const sandbox = ASandbox.born().send({ type: 'LAUNCH_REFUSED', reason: 'no such image' });
    expect(sandbox.intents.slice(1)).to.deep.equal([
      { type: 'report-start', outcome: 'refused', reason: 'no such image' },
      { type: 'look' },
    ]);
    expect(sandbox.send(fact(undefined, GONE)).state).to.equal('completed');
  });

  it('ends without a failure if there is no room for it', () => {
    const sandbox = ASandbox.born().send({ type: 'LAUNCH_DEFERRED', reason: 'no place' });
    expect(sandbox.intents.slice(1)).to.deep.equal([
      { type: 'report-start', outcome: 'deferred', reason: 'no place' },
      { type: 'look' },
    ]);
    expect(sandbox.context.end).to.deep.equal({ reason: 'retired', exitCode: null });
    expect(sandbox.send(fact(undefined, GONE)).state).to.equal('completed');
  });

  it('is retired if its launch is refused after an earlier attempt took effect', () => {
    const sandbox = ASandbox.born().send(
      { type: 'LAUNCH_UNKNOWN', now: T0 },
      { type: 'LAUNCH_REFUSED', reason: 'no room' },
      fact(aRecord()),
    );
    expect(sandbox.last).to.deep.equal({
      type: 'retire',
      seen: '1',
      namespace: 'alpha',
      asked: false,
    });
  });

  it('is retired as failed if it is not ready in time', () => {
    const sandbox = ASandbox.born().send(
      { type: 'LAUNCHED', record: aRecord(), now: T0 },
      deadline(T0 + 10_000),
    );
    expect(sandbox.intents.slice(1)).to.deep.equal([
      {
        type: 'report-start',
        outcome: 'failed',
        reason: 'did not become ready within startupTimeout',
      },
      { type: 'retire', seen: '1', namespace: 'alpha', asked: false },
    ]);
  });

  it('has its full time to become ready, counted from the end of its launch', () => {
    const late = { type: 'LAUNCHED', record: aRecord(), now: T0 + 9_000 } as const;
    const sandbox = ASandbox.born().send(
      { type: 'LAUNCH_UNKNOWN', now: T0 },
      late,
      deadline(T0 + 18_999),
    );
    expect(sandbox.state).to.equal('starting.booting');
    expect(sandbox.send(deadline(T0 + 19_000)).state).to.equal('stopping.retiring');
  });

  it('fails with the last message of its probes', () => {
    const unready: Vitals = { kind: 'starting', reason: 'readinessProbe: GET / answered 503' };
    const sandbox = ASandbox.born().send(
      { type: 'LAUNCHED', record: aRecord(), now: T0 },
      fact(aRecord(), unready),
      deadline(T0 + 10_000),
    );
    expect(sandbox.intents[1]).to.deep.equal({
      type: 'report-start',
      outcome: 'failed',
      reason: 'did not become ready within startupTimeout: readinessProbe: GET / answered 503',
    });
  });

  it('fails with the reason for which its process died', () => {
    const sandbox = ASandbox.born().send(
      { type: 'LAUNCHED', record: aRecord(), now: T0 },
      fact(aRecord(), EXITED),
    );
    expect(sandbox.intents).to.deep.include({
      type: 'report-start',
      outcome: 'failed',
      reason: 'exited',
    });
  });

  it('reports no failed start if it was removed at its start or soon after', () => {
    const removed: Vitals = {
      kind: 'gone',
      exitCode: null,
      reason: 'its Pod was deleted',
      removed: true,
    };
    for (const first of [STARTING, AVAILABLE]) {
      const sandbox = ASandbox.born().send(
        { type: 'LAUNCHED', record: aRecord(), now: T0 },
        fact(aRecord(), first),
        fact(aRecord(), removed),
      );
      expect(sandbox.intents).to.deep.include({
        type: 'report-start',
        outcome: 'deferred',
        reason: 'its Pod was deleted',
      });
    }
  });

  it('is retired once its launch is known to have taken effect, if it should end', () => {
    const sandbox = ASandbox.born().send(RETIRE, { type: 'LAUNCHED', record: aRecord(), now: T0 });
    expect(sandbox.last).to.deep.equal({
      type: 'retire',
      seen: '1',
      namespace: 'alpha',
      asked: false,
    });
  });

  it('keeps a claim that arrives before the answer to its launch', () => {
    const sandbox = ASandbox.born().send(fact(claimed()), {
      type: 'LAUNCHED',
      record: aRecord(),
      now: T0,
    });
    expect(sandbox.state).to.equal('running');
  });
});

describe('a sandbox found after a restart', () => {
  const cases: readonly (readonly [string, InstanceRecord, Vitals, string])[] = [
    ['idle where it is ready', aRecord(), AVAILABLE, 'idle.available'],
    [
      'idle, and not to be claimed, where it no longer answers',
      aRecord(),
      UNAVAILABLE,
      'idle.unavailable',
    ],
    ['starting where its process has not got ready', aRecord(), STARTING, 'starting.booting'],
    ['retired where its process is gone', aRecord(), GONE, 'stopping.retiring'],
    ['running where it is claimed', claimed(), AVAILABLE, 'running'],
    ['running where it is claimed and not answering', claimed(), UNAVAILABLE, 'running'],
    ['released where it is claimed and gone', claimed(), GONE, 'stopping.releasing'],
    ['released where it was ending', ending(), AVAILABLE, 'stopping.releasing'],
  ];
  for (const [what, record, vitals, state] of cases)
    it(`is ${what}`, () => expect(ASandbox.found(record, vitals).state).to.equal(state));

  describe('without the process that its record names', () => {
    const UNLAUNCHED: Vitals = {
      kind: 'starting',
      reason: 'its Pod does not exist yet',
      unlaunched: true,
    };
    const retired = [{ type: 'retire', seen: '1', namespace: 'alpha', asked: false }];

    it('is retired by the current leader, and is not a failed start', () => {
      const sandbox = ASandbox.found(aRecord(), UNLAUNCHED).send(LEADING);
      expect(sandbox.intents).to.deep.equal(retired);
      expect(sandbox.context.end).to.deep.equal({ reason: 'retired', exitCode: null });
    });

    it('is not a failed start after its deadline either', () => {
      expect(
        ASandbox.found(aRecord(), UNLAUNCHED).send(deadline(T0 + 10_000)).intents,
      ).to.deep.equal(retired);
    });

    it('starts if the process appears later', () => {
      const sandbox = ASandbox.found(aRecord(), UNLAUNCHED).send(
        fact(aRecord(), STARTING),
        LEADING,
      );
      expect(sandbox.state).to.equal('starting.booting');
      expect(sandbox.send(deadline(T0 + 10_000)).intents[0]).to.include({
        type: 'report-start',
        outcome: 'failed',
      });
    });

    it('waits for a launch of it that is in progress on this replica', () => {
      const sandbox = ASandbox.born().send(fact(aRecord(), UNLAUNCHED), LEADING);
      expect(sandbox.state).to.equal('starting.ordered.launching');
      expect(
        sandbox.send({ type: 'LAUNCHED', record: aRecord(), now: T0 }, LEADING).state,
      ).to.equal('starting.booting');
    });
  });

  it('is steady after it has been ready for the required time, and waits for the rest otherwise', () => {
    const since = (ago: number): Vitals => ({
      kind: 'available',
      startedAt: T0 - 2 * STEADY_MS,
      since: T0 - ago,
    });
    expect(ASandbox.found(aRecord(), since(STEADY_MS)).context.deadline).to.equal(undefined);
    expect(ASandbox.found(aRecord(), since(4_000)).context.deadline).to.equal(
      T0 - 4_000 + STEADY_MS,
    );
    expect(
      ASandbox.found(aRecord(), { kind: 'available', startedAt: T0 - STEADY_MS }).context.deadline,
    ).to.equal(undefined);
    expect(
      ASandbox.found(aRecord(), {
        kind: 'unavailable',
        startedAt: T0 - STEADY_MS,
        reason: 'HTTP 500',
      }).context.deadline,
    ).to.equal(undefined);
  });

  it('counts its idle time from when it became ready, and never from the future', () => {
    const since = (at: number): number | undefined =>
      ASandbox.found(aRecord(), { kind: 'available', startedAt: T0 - 9, since: at }).context
        .availableAt;
    expect(since(T0 - 5)).to.equal(T0 - 5);
    expect(since(T0 + 5)).to.equal(T0);
  });

  it('keeps the exit code of a process that ended in the meantime', () => {
    expect(ASandbox.found(claimed(), EXITED).last).to.deep.equal({
      type: 'release',
      end: { reason: 'exited', exitCode: 3 },
      asked: false,
    });
  });
});

describe('a claim of a sandbox', () => {
  it('writes at the observed revision, and the sandbox runs once the write succeeds', () => {
    const sandbox = ASandbox.found().send(CLAIM);
    expect(sandbox.last).to.deep.equal({
      type: 'claim',
      claim: aClaim({ claimedAt: T0 }),
      seen: aRecord(),
    });
    expect(sandbox.send(CLAIMED).state).to.equal('running');
  });

  it('changes nothing if the sandbox is not idle and ready', () => {
    for (const sandbox of [
      ASandbox.born(),
      ASandbox.found(aRecord(), STARTING),
      ASandbox.found(aRecord(), UNAVAILABLE),
      running(),
      ASandbox.found(aRecord(), GONE),
    ]) {
      const before = sandbox.state;
      expect(sandbox.send(CLAIM).state).to.equal(before);
      expect(
        sandbox.intents.some(({ type }) => type === 'claim'),
        before,
      ).to.equal(false);
    }
  });

  it('with an unknown outcome is checked, and runs if the record shows it', () => {
    const sandbox = ASandbox.found().send(CLAIM, CLAIM_OUTCOME_UNKNOWN);
    expect(sandbox.last).to.deep.equal({ type: 'look' });
    expect(sandbox.send(fact(claimed())).state).to.equal('running');
  });

  it('in progress is over when the record shows any claim', () => {
    for (const terms of [{}, { claimedAt: T0 + 1 }]) {
      const sandbox = ASandbox.found().send(CLAIM, fact(claimed(terms)));
      expect(sandbox.state).to.equal('running');
      expect(sandbox.send(CLAIM_OUTCOME_UNKNOWN).state).to.equal('running');
    }
    expect(ASandbox.found().send(CLAIM, fact(aRecord(), UNAVAILABLE)).state).to.equal(
      'claiming.writing',
    );
  });

  it('that had no effect is written again at the current revision, at once and then after pauses', () => {
    const sandbox = ASandbox.found().send(
      CLAIM,
      CLAIM_OUTCOME_UNKNOWN,
      fact(aRecord({ revision: '5' })),
    );
    expect(sandbox.last).to.deep.include({ type: 'claim', seen: aRecord({ revision: '5' }) });
    sandbox.send(CLAIM_OUTCOME_UNKNOWN, fact(aRecord({ revision: '5' })));
    expect(sandbox.state).to.equal('claiming.retrying');
    expect(sandbox.send(deadline(T0 + 10 + CLAIM_REPEAT_MS)).last).to.deep.include({
      type: 'claim',
      seen: aRecord({ revision: '5' }),
    });
  });

  it('with an unknown outcome is settled by retiring the record after its request times out', () => {
    const sandbox = ASandbox.found().send(
      CLAIM,
      deadline(T0 + 5_000),
      fact(aRecord(), AVAILABLE, T0 + 5_001),
    );
    expect(sandbox.last).to.deep.equal({
      type: 'retire',
      seen: '1',
      namespace: 'alpha',
      asked: true,
    });
  });

  it('that succeeds after its request timed out stays with its owner', () => {
    const sandbox = ASandbox.found().send(
      CLAIM,
      deadline(T0 + 5_000),
      fact(aRecord(), AVAILABLE, T0 + 5_001),
      CLAIMED,
    );
    expect(sandbox.state).to.equal('running');
    expect(sandbox.context.end).to.equal(undefined);
  });

  it('that another caller won belongs to that caller', () => {
    const theirs = { ...aClaim().owner, user: 'bob' };
    const sandbox = ASandbox.found().send(
      CLAIM,
      CLAIM_OUTCOME_UNKNOWN,
      fact(claimed({ owner: theirs })),
    );
    expect(sandbox.state).to.equal('running');
    expect(sandbox.context.record?.claim?.owner).to.deep.equal(theirs);
  });

  it('is released if it succeeds after the sandbox was ended', () => {
    const sandbox = ASandbox.found().send(CLAIM, END, CLAIMED);
    expect(sandbox.last).to.deep.equal({
      type: 'release',
      end: { reason: 'deleted', exitCode: null },
      asked: true,
    });
  });

  it('of an instance without a record only waits for its end', () => {
    const sandbox = ASandbox.found().send(CLAIM, CLAIM_OUTCOME_UNKNOWN, fact(undefined, AVAILABLE));
    expect(sandbox.state).to.equal('stopping.waiting');
    expect(sandbox.send(fact(undefined, GONE)).last).to.deep.equal({ type: 'close' });
  });
});

describe('an idle sandbox', () => {
  it('can be claimed only while it is ready', () => {
    const sandbox = ASandbox.found().send(fact(aRecord(), UNAVAILABLE));
    expect(sandbox.state).to.equal('idle.unavailable');
    expect(sandbox.send(fact(aRecord())).state).to.equal('idle.available');
  });

  it('runs when another replica claims it', () => {
    expect(ASandbox.found().send(fact(claimed())).state).to.equal('running');
  });

  it('counts as dead without a record', () => {
    expect(ASandbox.found().send(fact(undefined, AVAILABLE)).state).to.equal('stopping.waiting');
  });

  it('runs on if a claim precedes its retirement', () => {
    const sandbox = ASandbox.found().send(
      RETIRE,
      { type: 'RETIRE_OUTCOME_UNKNOWN', now: T0 + 30 },
      fact(claimed()),
    );
    expect(sandbox.state).to.equal('running');
  });

  it('that was deleted ends even if it was claimed at the same time', () => {
    for (const before of [[END], [RETIRE, END]]) {
      const sandbox = ASandbox.found().send(
        ...before,
        { type: 'RETIRE_OUTCOME_UNKNOWN', now: T0 + 30 },
        fact(claimed()),
      );
      expect(sandbox.last).to.deep.equal({
        type: 'release',
        end: { reason: 'deleted', exitCode: null },
        asked: true,
      });
    }
  });

  it('that is claimed and ending is released, and not retired forever', () => {
    const sandbox = ASandbox.found().send(
      RETIRE,
      { type: 'RETIRE_OUTCOME_UNKNOWN', now: T0 + 30 },
      fact(ending()),
    );
    expect(sandbox.state).to.equal('stopping.releasing');
  });

  it('whose retirement failed can be claimed after a pause', () => {
    const failed = { type: 'RETIRE_OUTCOME_UNKNOWN', now: T0 + 30 } as const;
    const sandbox = ASandbox.found().send(RETIRE, failed, fact(aRecord({ revision: '4' })));
    expect(sandbox.state).to.equal('stopping.retireFailed');
    expect(sandbox.send(deadline(T0 + 10 + RETRY_MS)).state).to.equal('idle.available');
    expect(sandbox.context.end).to.equal(undefined);
  });

  it("whose retirement failed runs as soon as a fact shows another replica's claim", () => {
    const failed = { type: 'RETIRE_OUTCOME_UNKNOWN', now: T0 + 30 } as const;
    const sandbox = ASandbox.found().send(RETIRE, failed, fact(aRecord({ revision: '4' })));
    expect(sandbox.send(fact({ ...claimed(), revision: '5' })).state).to.equal('running');
    expect(sandbox.context.end).to.equal(undefined);
  });

  it('whose retirement failed has ended once its record is gone', () => {
    const failed = { type: 'RETIRE_OUTCOME_UNKNOWN', now: T0 + 30 } as const;
    const sandbox = ASandbox.found().send(RETIRE, failed, fact(aRecord({ revision: '4' })));
    expect(sandbox.send(fact(undefined)).state).to.equal('stopping.waiting');
  });

  it('whose retirement failed is retired again after a pause if it died or should end', () => {
    const failed = { type: 'RETIRE_OUTCOME_UNKNOWN', now: T0 + 30 } as const;
    const still = fact(aRecord({ revision: '4' }));
    const died = ASandbox.found().send(
      RETIRE,
      failed,
      fact(aRecord({ revision: '4' }), { kind: 'gone', exitCode: 1, reason: 'exited' }),
    );
    expect(died.send(deadline(T0 + 10 + RETRY_MS)).last).to.deep.equal({
      type: 'retire',
      seen: '4',
      namespace: 'alpha',
      asked: false,
    });
    const told = ASandbox.found().send(END, failed, still);
    expect(told.send(deadline(T0 + 10 + RETRY_MS)).last).to.deep.equal({
      type: 'retire',
      seen: '4',
      namespace: 'alpha',
      asked: true,
    });
  });
});

describe('a running sandbox', () => {
  it('ends at its idle timeout, counted from its last activity', () => {
    const sandbox = running({ idleTimeoutMs: 5_000 }).send(
      { type: 'ACTIVE', now: T0 + 3_000 },
      deadline(T0 + 5_000),
    );
    expect(sandbox.state).to.equal('running');
    expect(sandbox.context.deadline).to.equal(T0 + 8_000);
    expect(sandbox.send(deadline(T0 + 8_000)).last).to.deep.include({
      type: 'confirm-expiry',
      reason: 'idle-timeout',
    });
    expect(sandbox.state).to.equal('running');
    expect(sandbox.send(expired('idle-timeout', T0 + 8_001)).last).to.deep.equal({
      type: 'release',
      end: { reason: 'idle-timeout', exitCode: null },
      asked: false,
    });
  });

  it('runs on after activity at another replica, or here during the check', () => {
    const elsewhere = running({ idleTimeoutMs: 5_000 }).send(deadline(T0 + 5_000), {
      type: 'STILL_ACTIVE',
      activeAt: T0 + 4_000,
      now: T0 + 5_001,
    });
    expect([elsewhere.state, elsewhere.context.deadline]).to.deep.equal(['running', T0 + 9_000]);
    const here = running({ idleTimeoutMs: 5_000 }).send(
      deadline(T0 + 5_000),
      { type: 'ACTIVE', now: T0 + 5_001 },
      expired('idle-timeout', T0 + 5_002),
    );
    expect([here.state, here.context.deadline]).to.deep.equal(['running', T0 + 10_001]);
  });

  it('checks its expiry again if nobody answers, and later if another replica leads', () => {
    const sandbox = running({ idleTimeoutMs: 5_000 }).send(deadline(T0 + 5_000));
    expect(sandbox.context.deadline).to.equal(T0 + 5_000 + RETRY_MS);
    expect(sandbox.send({ type: 'NOT_LEADING', now: T0 + 5_001 }).context.deadline).to.equal(
      T0 + 5_001 + LEADER_MS,
    );
  });

  it('ends if its record is deleted by hand', () => {
    const sandbox = running().send(fact(undefined, AVAILABLE));
    expect(sandbox.last).to.deep.equal({
      type: 'release',
      end: { reason: 'deleted', exitCode: null },
      asked: false,
    });
    expect(
      sandbox.send({ type: 'RELEASED', now: T0 }, fact(undefined, GONE)).last,
    ).to.have.nested.property('finished.endReason', 'deleted');
  });

  it('is not idle while a command runs', () => {
    const sandbox = running({ idleTimeoutMs: 5_000 }).send(
      { type: 'WORK_BEGAN', now: T0 + 1_000 },
      deadline(T0 + 60_000),
    );
    expect(sandbox.state).to.equal('running');
    sandbox.send({ type: 'WORK_ENDED', now: T0 + 61_000 });
    expect(sandbox.context.deadline).to.equal(T0 + 66_000);
  });

  it('ends at its maximum lifetime, whatever it does', () => {
    const sandbox = running({ maxLifetimeMs: 9_000 }).send(
      { type: 'WORK_BEGAN', now: T0 + 1_000 },
      deadline(T0 + 9_000),
    );
    expect(sandbox.last).to.deep.include({ type: 'confirm-expiry', reason: 'max-lifetime' });
    expect(sandbox.send(expired('max-lifetime', T0 + 9_001)).last).to.deep.equal({
      type: 'release',
      end: { reason: 'max-lifetime', exitCode: null },
      asked: false,
    });
  });

  it('follows a changed idle timeout, from this or another replica', () => {
    const longer = { ...claimed({ idleTimeoutMs: 60_000 }), revision: '3' };
    expect(
      running({ idleTimeoutMs: 5_000 }).send({ type: 'AMENDED', record: longer, now: T0 + 10 })
        .context.deadline,
    ).to.equal(T0 + 60_010);
    expect(running().send(fact(longer)).context.deadline).to.equal(T0 + 60_000);
  });

  it('has its whole idle timeout if it was claimed while it started', () => {
    const sandbox = ASandbox.found(aRecord(), STARTING).send(
      fact(claimed({ claimedAt: T0 + 9_000, idleTimeoutMs: 5_000 }), AVAILABLE, T0 + 9_000),
    );
    expect(sandbox.context.deadline).to.equal(T0 + 14_000);
  });

  it('cannot be retired', () => expect(running().send(RETIRE).state).to.equal('running'));

  it('does not become idle again by an older fact', () => {
    expect(running().send(fact(aRecord())).context.record?.state).to.equal('claimed');
  });

  it('is released with its exit code, or as lost if the code is unknown', () => {
    expect(running().send(fact(claimed(), EXITED)).last).to.deep.equal({
      type: 'release',
      end: { reason: 'exited', exitCode: 3 },
      asked: false,
    });
    expect(running().send(fact(claimed(), GONE)).last).to.deep.equal({
      type: 'release',
      end: { reason: 'lost', exitCode: null },
      asked: false,
    });
  });

  it('takes the end from its record', () => {
    const sandbox = ASandbox.found().send(RETIRE, fact(ending()));
    expect(sandbox.context.end).to.deep.equal({ reason: 'deleted', exitCode: null });
  });

  it('closes when another replica has ended it', () => {
    expect(running().send(fact(ending())).state).to.equal('stopping.releasing');
  });
});

describe('a sandbox that another replica ends', () => {
  it('waits for the leader, and closes once nothing of it remains', () => {
    const sandbox = running().send(fact(claimed(), EXITED), NOT_LEADING);
    expect(sandbox.state).to.equal('stopping.awaitingLeader');
    expect(sandbox.context.deadline).to.equal(T0 + 20 + LEADER_MS);
    expect(sandbox.send(fact(undefined, EXITED)).state).to.equal('completed');
  });

  it('is ended by this replica once it leads', () => {
    const sandbox = running().send(
      fact(claimed(), EXITED),
      NOT_LEADING,
      deadline(T0 + 20 + LEADER_MS),
    );
    expect(sandbox.last).to.deep.include({ type: 'release' });
    expect(sandbox.send({ type: 'RELEASED', now: T0 }).last).to.have.nested.property(
      'finished.exitCode',
      3,
    );
  });

  it('is retired only by the leader, and runs on if it was claimed first', () => {
    const sandbox = ASandbox.found(aRecord(), GONE).send(NOT_LEADING);
    expect(sandbox.state).to.equal('stopping.awaitingLeader');
    expect(ASandbox.found().send(RETIRE, NOT_LEADING, fact(claimed())).state).to.equal('running');
  });

  it('is ended here at once by a request to this replica', () => {
    const sandbox = running().send(fact(ending()), NOT_LEADING, END);
    expect(sandbox.last).to.deep.include({ type: 'release', asked: true });
  });

  it('is ended here at once when this replica returns its claim', () => {
    const { last } = running().send({ ...END, reason: 'claim-failed' });
    const end = { reason: 'claim-failed', exitCode: null };
    expect(last).to.deep.equal({ type: 'release', end, asked: true });
  });

  it('leaves its history and record to the leader', () => {
    const sandbox = running().send(
      END,
      { type: 'RELEASED', now: T0 },
      fact(ending(), GONE),
      NOT_LEADING,
    );
    expect(sandbox.state).to.equal('stopping.awaitingLeader');
    expect(sandbox.send(fact(undefined, GONE)).state).to.equal('completed');
  });
});

describe('an ending sandbox', () => {
  const closing = (): ASandbox =>
    running().send(END, { type: 'RELEASED', now: T0 + 30 }, fact(ending(), GONE));

  it('saves its end, waits until nothing of it runs, writes its history, and closes', () => {
    const sandbox = running().send(END, { type: 'RELEASED', now: T0 + 30 });
    expect(sandbox.state).to.equal('stopping.waiting');
    sandbox.send(fact(ending(), GONE, T0 + 40));
    expect(sandbox.last).to.have.property('type', 'close');
    expect(sandbox.last)
      .to.have.property('finished')
      .that.includes({ endReason: 'deleted', terminatedAt: T0 + 40, claimedAt: T0 });
    expect(sandbox.send({ type: 'CLOSED' }).state).to.equal('completed');
  });

  it('repeats its release until the release is saved', () => {
    const sandbox = running().send(END, { type: 'RELEASE_OUTCOME_UNKNOWN', now: T0 + 30 });
    expect(sandbox.state).to.equal('stopping.releaseFailed');
    expect(
      sandbox.send(deadline(T0 + 30 + RETRY_MS)).intents.filter(({ type }) => type === 'release'),
    ).to.have.length(2);
  });

  it('checks again if nothing reports its end, and only as leader', () => {
    const sandbox = running().send(
      END,
      { type: 'RELEASED', now: T0 + 30 },
      deadline(T0 + 30 + LEADER_MS),
    );
    expect(sandbox.last).to.deep.equal({ type: 'look', patient: true });
    expect(sandbox.context.deadline).to.equal(T0 + 30 + 2 * LEADER_MS);
    expect(sandbox.send({ type: 'NOT_LEADING', now: T0 + 6_000 }).context.deadline).to.equal(
      T0 + 6_000 + LEADER_MS,
    );
  });

  it('does not check during its grace period', () => {
    const endsBy = T0 + 60_000;
    const sandbox = running().send(
      END,
      { type: 'RELEASED', now: T0 + 30 },
      fact(
        ending(),
        { kind: 'unavailable', startedAt: T0, reason: 'its Pod is being deleted', endsBy },
        T0 + 40,
      ),
    );
    expect(sandbox.context.deadline).to.equal(endsBy + OVERRUN_MS);
    expect(sandbox.send(deadline(endsBy + OVERRUN_MS)).last).to.deep.equal({
      type: 'look',
      patient: true,
    });
  });

  it('repeats its closing until its history is written', () => {
    const sandbox = closing().send({ type: 'CLOSE_OUTCOME_UNKNOWN', now: T0 + 50 });
    expect(sandbox.state).to.equal('stopping.closeFailed');
    expect(sandbox.send(deadline(T0 + 50 + RETRY_MS)).last).to.have.property('type', 'close');
  });

  it('keeps its first end reason', () => {
    const sandbox = running().send(fact(claimed(), EXITED), END);
    expect(sandbox.context.end).to.deep.equal({ reason: 'exited', exitCode: 3 });
  });

  it('writes no history if nobody claimed it', () => {
    const sandbox = ASandbox.found().send(
      RETIRE,
      { type: 'RETIRED', now: T0 + 30 },
      fact(undefined, GONE),
    );
    expect(sandbox.last).to.deep.equal({ type: 'close' });
  });

  it('does not come back by an older fact', () => {
    const sandbox = ASandbox.found().send(
      RETIRE,
      { type: 'RETIRED', now: T0 + 30 },
      fact(aRecord()),
    );
    expect(sandbox.context.record).to.equal(undefined);
    expect(sandbox.state).to.equal('stopping.waiting');
  });
});
