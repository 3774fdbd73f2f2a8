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

  it('is retired where it is idle and any of them has ended', () => {
    const sandbox = steady().send(fact(aRecord(), BROKEN, T0 + STEADY_MS + 1));
    expect(sandbox.last).to.deep.include({ type: 'retire', asked: false });
    expect(sandbox.context.end).to.deep.equal({ reason: 'container-ended', exitCode: null });
    expect(sandbox.send(NOT_LEADING).state, 'left to who leads').to.equal(
      'stopping.awaitingLeader',
    );
  });

  it('has failed to start where any of them ends before it is ready, or soon after', () => {
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

  it('runs on without another one once it is claimed, also where the claim came first', () => {
    expect(running().send(fact(claimed(), BROKEN)).state).to.equal('running');
    const sandbox = steady().send(
      fact(aRecord(), BROKEN),
      { type: 'RETIRE_OUTCOME_UNKNOWN', now: T0 + 20 },
      fact(claimed(), BROKEN),
    );
    expect(sandbox.state).to.equal('running');
    expect(sandbox.context.end).to.equal(undefined);
  });

  it('ends with the first one, and is closed once nothing of the others is left', () => {
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

  it('is ended with the first one where nobody claimed it, too', () => {
    const sandbox = steady().send(fact(aRecord(), MAIN_ENDED));
    expect(sandbox.last).to.deep.include({ type: 'retire' });
    expect(sandbox.send({ type: 'RETIRED', now: T0 + 60 }).state).to.equal('stopping.waiting');
    expect(sandbox.send(fact(undefined, GONE)).state).to.equal('stopping.closing');
  });
});

describe('a sandbox that is launched', () => {
  it('becomes idle when it is ready to be claimed, and reports its start once it has lived for a while', () => {
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

  it('reports its start when it is claimed before', () => {
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

  it('reports a failure when its process ends soon after it began, and none when it ends later', () => {
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

  it('is launched again under the same id while it is not known to have landed', () => {
    const launchOrder = aLaunchOrder({ id: 'one' });
    const sandbox = ASandbox.born(launchOrder).send(deadline(T0 + LAUNCH_MS));
    expect(sandbox.state).to.equal('starting.ordered.uncertain');
    sandbox.send(deadline(T0 + LAUNCH_MS + RETRY_MS));
    expect(sandbox.intents).to.deep.equal([
      { type: 'launch', launchOrder },
      { type: 'launch', launchOrder },
    ]);
  });

  it('is gone on with, where another replica leads, only if it had landed', () => {
    const unlanded = ASandbox.born().send(NOT_LEADING);
    expect(unlanded.last).to.deep.equal({ type: 'look' });
    expect(unlanded.send(fact(undefined, GONE)).state).to.equal('completed');
    expect(ASandbox.born().send(NOT_LEADING, fact(aRecord(), STARTING)).state).to.equal(
      'starting.booting',
    );
  });

  it('is idle as soon as it is seen to be, though its launch is not answered yet, or never', () => {
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

  it('is done with, and reported as refused, when it was refused and there is no record', () => {
    const sandbox = ASandbox.born().send({ type: 'LAUNCH_REFUSED', reason: 'no such image' });
    expect(sandbox.intents.slice(1)).to.deep.equal([
      { type: 'report-start', outcome: 'refused', reason: 'no such image' },
      { type: 'look' },
    ]);
    expect(sandbox.send(fact(undefined, GONE)).state).to.equal('completed');
  });

  it('is done with, and not reported as failed, when there is no place for it now', () => {
    const sandbox = ASandbox.born().send({ type: 'LAUNCH_DEFERRED', reason: 'no place' });
    expect(sandbox.intents.slice(1)).to.deep.equal([
      { type: 'report-start', outcome: 'deferred', reason: 'no place' },
      { type: 'look' },
    ]);
    expect(sandbox.context.end).to.deep.equal({ reason: 'retired', exitCode: null });
    expect(sandbox.send(fact(undefined, GONE)).state).to.equal('completed');
  });

  it('is cleared away when it was refused although an earlier attempt had landed', () => {
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

  it('is retired, and reported as failed, when it is not ready in time', () => {
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

  it('has all of its time from when it was launched, however long that took', () => {
    const late = { type: 'LAUNCHED', record: aRecord(), now: T0 + 9_000 } as const;
    const sandbox = ASandbox.born().send(
      { type: 'LAUNCH_UNKNOWN', now: T0 },
      late,
      deadline(T0 + 18_999),
    );
    expect(sandbox.state).to.equal('starting.booting');
    expect(sandbox.send(deadline(T0 + 19_000)).state).to.equal('stopping.retiring');
  });

  it('is reported as failed with what its probes said last', () => {
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

  it('reports why its process died at start', () => {
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

  it('blames no start where it was taken away, at its start or soon after', () => {
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

  it('is retired as soon as it is known to have landed when it was to end before', () => {
    const sandbox = ASandbox.born().send(RETIRE, { type: 'LAUNCHED', record: aRecord(), now: T0 });
    expect(sandbox.last).to.deep.equal({
      type: 'retire',
      seen: '1',
      namespace: 'alpha',
      asked: false,
    });
  });

  it('keeps a claim that it learned of before its own launch was answered', () => {
    const sandbox = ASandbox.born().send(fact(claimed()), {
      type: 'LAUNCHED',
      record: aRecord(),
      now: T0,
    });
    expect(sandbox.state).to.equal('running');
  });
});

describe('a sandbox that is found', () => {
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

  describe('without the process of which its record speaks', () => {
    const UNLAUNCHED: Vitals = {
      kind: 'starting',
      reason: 'its Pod is not there yet',
      unlaunched: true,
    };
    const retired = [{ type: 'retire', seen: '1', namespace: 'alpha', asked: false }];

    it('is retired by whoever leads now, and is no failed start', () => {
      const sandbox = ASandbox.found(aRecord(), UNLAUNCHED).send(LEADING);
      expect(sandbox.intents).to.deep.equal(retired);
      expect(sandbox.context.end).to.deep.equal({ reason: 'retired', exitCode: null });
    });

    it('is no failed start either where its time is over', () => {
      expect(
        ASandbox.found(aRecord(), UNLAUNCHED).send(deadline(T0 + 10_000)).intents,
      ).to.deep.equal(retired);
    });

    it('starts where that comes after all', () => {
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

    it('is left to the launch of it that is under way here', () => {
      const sandbox = ASandbox.born().send(fact(aRecord(), UNLAUNCHED), LEADING);
      expect(sandbox.state).to.equal('starting.ordered.launching');
      expect(
        sandbox.send({ type: 'LAUNCHED', record: aRecord(), now: T0 }, LEADING).state,
      ).to.equal('starting.booting');
    });
  });

  it('is steady where it has been ready for as long, and waits for the rest of that time where it has not', () => {
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

  it('has been idle for as long as it was ready, and not for longer than until now', () => {
    const since = (at: number): number | undefined =>
      ASandbox.found(aRecord(), { kind: 'available', startedAt: T0 - 9, since: at }).context
        .availableAt;
    expect(since(T0 - 5)).to.equal(T0 - 5);
    expect(since(T0 + 5)).to.equal(T0);
  });

  it('keeps the exit code of a process that ended unseen', () => {
    expect(ASandbox.found(claimed(), EXITED).last).to.deep.equal({
      type: 'release',
      end: { reason: 'exited', exitCode: 3 },
      asked: false,
    });
  });
});

describe('a claim', () => {
  it('is written at the revision that was seen, and runs once it has landed', () => {
    const sandbox = ASandbox.found().send(CLAIM);
    expect(sandbox.last).to.deep.equal({
      type: 'claim',
      claim: aClaim({ claimedAt: T0 }),
      seen: aRecord(),
    });
    expect(sandbox.send(CLAIMED).state).to.equal('running');
  });

  it('changes nothing where the sandbox is not idle and ready', () => {
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

  it('of unknown outcome is looked at, and runs where the record shows it', () => {
    const sandbox = ASandbox.found().send(CLAIM, CLAIM_OUTCOME_UNKNOWN);
    expect(sandbox.last).to.deep.equal({ type: 'look' });
    expect(sandbox.send(fact(claimed())).state).to.equal('running');
  });

  it("that is still under way when the record shows a claim, ours or another's, is over", () => {
    for (const terms of [{}, { claimedAt: T0 + 1 }]) {
      const sandbox = ASandbox.found().send(CLAIM, fact(claimed(terms)));
      expect(sandbox.state).to.equal('running');
      expect(sandbox.send(CLAIM_OUTCOME_UNKNOWN).state).to.equal('running');
    }
    expect(ASandbox.found().send(CLAIM, fact(aRecord(), UNAVAILABLE)).state).to.equal(
      'claiming.writing',
    );
  });

  it('that did not land is written again at the revision that is there now, at once and then after a pause', () => {
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

  it('of unknown outcome is settled by retiring the record once its request has given up', () => {
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

  it('that lands after its request has given up stays with who asked for it', () => {
    const sandbox = ASandbox.found().send(
      CLAIM,
      deadline(T0 + 5_000),
      fact(aRecord(), AVAILABLE, T0 + 5_001),
      CLAIMED,
    );
    expect(sandbox.state).to.equal('running');
    expect(sandbox.context.end).to.equal(undefined);
  });

  it('that another won is theirs', () => {
    const theirs = { ...aClaim().owner, user: 'bob' };
    const sandbox = ASandbox.found().send(
      CLAIM,
      CLAIM_OUTCOME_UNKNOWN,
      fact(claimed({ owner: theirs })),
    );
    expect(sandbox.state).to.equal('running');
    expect(sandbox.context.record?.claim?.owner).to.deep.equal(theirs);
  });

  it('is released when it lands after the sandbox was told to end', () => {
    const sandbox = ASandbox.found().send(CLAIM, END, CLAIMED);
    expect(sandbox.last).to.deep.equal({
      type: 'release',
      end: { reason: 'deleted', exitCode: null },
      asked: true,
    });
  });

  it('of an instance whose record is gone waits for nothing but its end', () => {
    const sandbox = ASandbox.found().send(CLAIM, CLAIM_OUTCOME_UNKNOWN, fact(undefined, AVAILABLE));
    expect(sandbox.state).to.equal('stopping.waiting');
    expect(sandbox.send(fact(undefined, GONE)).last).to.deep.equal({ type: 'close' });
  });
});

describe('an idle sandbox', () => {
  it('can be claimed only while it answers', () => {
    const sandbox = ASandbox.found().send(fact(aRecord(), UNAVAILABLE));
    expect(sandbox.state).to.equal('idle.unavailable');
    expect(sandbox.send(fact(aRecord())).state).to.equal('idle.available');
  });

  it('runs when another replica claimed it', () => {
    expect(ASandbox.found().send(fact(claimed())).state).to.equal('running');
  });

  it('is dead, not free, without a record', () => {
    expect(ASandbox.found().send(fact(undefined, AVAILABLE)).state).to.equal('stopping.waiting');
  });

  it('runs on when it was claimed before its retirement landed', () => {
    const sandbox = ASandbox.found().send(
      RETIRE,
      { type: 'RETIRE_OUTCOME_UNKNOWN', now: T0 + 30 },
      fact(claimed()),
    );
    expect(sandbox.state).to.equal('running');
  });

  it('that was deleted ends also when it was claimed meanwhile', () => {
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

  it('that turns out to be claimed and ending is released, not retired for ever', () => {
    const sandbox = ASandbox.found().send(
      RETIRE,
      { type: 'RETIRE_OUTCOME_UNKNOWN', now: T0 + 30 },
      fact(ending()),
    );
    expect(sandbox.state).to.equal('stopping.releasing');
  });

  it('whose retirement failed can be claimed again after a pause: who decided it decides anew', () => {
    const failed = { type: 'RETIRE_OUTCOME_UNKNOWN', now: T0 + 30 } as const;
    const sandbox = ASandbox.found().send(RETIRE, failed, fact(aRecord({ revision: '4' })));
    expect(sandbox.state).to.equal('stopping.retireFailed');
    expect(sandbox.send(deadline(T0 + 10 + RETRY_MS)).state).to.equal('idle.available');
    expect(sandbox.context.end).to.equal(undefined);
  });

  it('whose retirement failed runs as soon as a fact shows that another replica has claimed it', () => {
    const failed = { type: 'RETIRE_OUTCOME_UNKNOWN', now: T0 + 30 } as const;
    const sandbox = ASandbox.found().send(RETIRE, failed, fact(aRecord({ revision: '4' })));
    expect(sandbox.send(fact({ ...claimed(), revision: '5' })).state).to.equal('running');
    expect(sandbox.context.end).to.equal(undefined);
  });

  it('whose retirement failed has ended once a fact shows that its record is gone', () => {
    const failed = { type: 'RETIRE_OUTCOME_UNKNOWN', now: T0 + 30 } as const;
    const sandbox = ASandbox.found().send(RETIRE, failed, fact(aRecord({ revision: '4' })));
    expect(sandbox.send(fact(undefined)).state).to.equal('stopping.waiting');
  });

  it('whose retirement failed is retired again after a pause where it has died, or was told to end', () => {
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

  it('runs on where something happened in it at another replica, or here meanwhile', () => {
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

  it('asks again whether it expired where nobody answers, and later where another replica leads', () => {
    const sandbox = running({ idleTimeoutMs: 5_000 }).send(deadline(T0 + 5_000));
    expect(sandbox.context.deadline).to.equal(T0 + 5_000 + RETRY_MS);
    expect(sandbox.send({ type: 'NOT_LEADING', now: T0 + 5_001 }).context.deadline).to.equal(
      T0 + 5_001 + LEADER_MS,
    );
  });

  it('is ended where its record was deleted by hand', () => {
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

  it('is not idle while a command is under way', () => {
    const sandbox = running({ idleTimeoutMs: 5_000 }).send(
      { type: 'WORK_BEGAN', now: T0 + 1_000 },
      deadline(T0 + 60_000),
    );
    expect(sandbox.state).to.equal('running');
    sandbox.send({ type: 'WORK_ENDED', now: T0 + 61_000 });
    expect(sandbox.context.deadline).to.equal(T0 + 66_000);
  });

  it('ends at its longest life whatever it does', () => {
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

  it('lives by an idle timeout that was changed, here or by another replica', () => {
    const longer = { ...claimed({ idleTimeoutMs: 60_000 }), revision: '3' };
    expect(
      running({ idleTimeoutMs: 5_000 }).send({ type: 'AMENDED', record: longer, now: T0 + 10 })
        .context.deadline,
    ).to.equal(T0 + 60_010);
    expect(running().send(fact(longer)).context.deadline).to.equal(T0 + 60_000);
  });

  it('that was claimed while it booted here has its whole idle timeout', () => {
    const sandbox = ASandbox.found(aRecord(), STARTING).send(
      fact(claimed({ claimedAt: T0 + 9_000, idleTimeoutMs: 5_000 }), AVAILABLE, T0 + 9_000),
    );
    expect(sandbox.context.deadline).to.equal(T0 + 14_000);
  });

  it('is not retired', () => expect(running().send(RETIRE).state).to.equal('running'));

  it('does not turn idle again by an older fact', () => {
    expect(running().send(fact(aRecord())).context.record?.state).to.equal('claimed');
  });

  it('is released with its exit code when it exits, and as lost where nobody knows', () => {
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

  it('has the end that is noted on its record, not the one presumed here', () => {
    const sandbox = ASandbox.found().send(RETIRE, fact(ending()));
    expect(sandbox.context.end).to.deep.equal({ reason: 'deleted', exitCode: null });
  });

  it('leaves when another replica ended it', () => {
    expect(running().send(fact(ending())).state).to.equal('stopping.releasing');
  });
});

describe('a sandbox that another replica is to end', () => {
  it('waits for what the leader does, and is done once nothing of it is left', () => {
    const sandbox = running().send(fact(claimed(), EXITED), NOT_LEADING);
    expect(sandbox.state).to.equal('stopping.awaitingLeader');
    expect(sandbox.context.deadline).to.equal(T0 + 20 + LEADER_MS);
    expect(sandbox.send(fact(undefined, EXITED)).state).to.equal('completed');
  });

  it('is looked after by this replica where it comes to lead', () => {
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

  it('is retired by the leader alone, and runs on where somebody claimed it first', () => {
    const sandbox = ASandbox.found(aRecord(), GONE).send(NOT_LEADING);
    expect(sandbox.state).to.equal('stopping.awaitingLeader');
    expect(ASandbox.found().send(RETIRE, NOT_LEADING, fact(claimed())).state).to.equal('running');
  });

  it('is ended here at once where this replica is told to', () => {
    const sandbox = running().send(fact(ending()), NOT_LEADING, END);
    expect(sandbox.last).to.deep.include({ type: 'release', asked: true });
  });

  it('is ended here at once where a claim of this replica is given back', () => {
    const { last } = running().send({ ...END, reason: 'claim-failed' });
    const end = { reason: 'claim-failed', exitCode: null };
    expect(last).to.deep.equal({ type: 'release', end, asked: true });
  });

  it('leaves history and record to the leader', () => {
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

describe('a sandbox that ends', () => {
  const closing = (): ASandbox =>
    running().send(END, { type: 'RELEASED', now: T0 + 30 }, fact(ending(), GONE));

  it('notes its end durably, waits until nothing of it runs, leaves history, and is done', () => {
    const sandbox = running().send(END, { type: 'RELEASED', now: T0 + 30 });
    expect(sandbox.state).to.equal('stopping.waiting');
    sandbox.send(fact(ending(), GONE, T0 + 40));
    expect(sandbox.last).to.have.property('type', 'close');
    expect(sandbox.last)
      .to.have.property('finished')
      .that.includes({ endReason: 'deleted', terminatedAt: T0 + 40, claimedAt: T0 });
    expect(sandbox.send({ type: 'CLOSED' }).state).to.equal('completed');
  });

  it('repeats its release until it is noted', () => {
    const sandbox = running().send(END, { type: 'RELEASE_OUTCOME_UNKNOWN', now: T0 + 30 });
    expect(sandbox.state).to.equal('stopping.releaseFailed');
    expect(
      sandbox.send(deadline(T0 + 30 + RETRY_MS)).intents.filter(({ type }) => type === 'release'),
    ).to.have.length(2);
  });

  it('looks again when nobody says that it is gone, and leaves that to the leader', () => {
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

  it('does not look while it is given time to end', () => {
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

  it('repeats its closing until history has it', () => {
    const sandbox = closing().send({ type: 'CLOSE_OUTCOME_UNKNOWN', now: T0 + 50 });
    expect(sandbox.state).to.equal('stopping.closeFailed');
    expect(sandbox.send(deadline(T0 + 50 + RETRY_MS)).last).to.have.property('type', 'close');
  });

  it('keeps the first end', () => {
    const sandbox = running().send(fact(claimed(), EXITED), END);
    expect(sandbox.context.end).to.deep.equal({ reason: 'exited', exitCode: 3 });
  });

  it('leaves no history where nobody held it', () => {
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
