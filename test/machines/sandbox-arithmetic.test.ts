import { expect } from 'chai';
import { finishedOf, isOurDoing, statusOf } from '../../src/machines/sandbox/arithmetic.ts';
import type { SandboxContext } from '../../src/machines/sandbox/events.ts';
import { expiryOf, sameClaim } from '../../src/model/pools/claim-rules.ts';
import { END_REASONS, type EndReason, type SandboxStatus } from '../../src/model/sandbox.ts';
import { aClaim, aRecord, ALICE, ASandbox, T0 } from './examples.ts';

const context = (part: Partial<SandboxContext> = {}): SandboxContext => ({
  ...ASandbox.found().context,
  ...part,
});
const ended = (reason: EndReason, exitCode: number | null = null) => ({ reason, exitCode });

describe('the expiry of a sandbox', () => {
  const active = T0 + 60_000;
  for (const [fact, idleTimeoutMs, maxLifetimeMs, working, expected] of [
    ['never without timeouts', 0, 0, 0, undefined],
    [
      'after the idle timeout, from its last activity',
      5_000,
      0,
      0,
      { at: active + 5_000, reason: 'idle-timeout' },
    ],
    [
      'after its longest life, from its claim',
      0,
      90_000,
      0,
      { at: T0 + 90_000, reason: 'max-lifetime' },
    ],
    [
      'at whichever comes first: idle',
      5_000,
      90_000,
      0,
      { at: active + 5_000, reason: 'idle-timeout' },
    ],
    [
      'at whichever comes first: life',
      50_000,
      90_000,
      0,
      { at: T0 + 90_000, reason: 'max-lifetime' },
    ],
    [
      'by its life where both come at once',
      30_000,
      90_000,
      0,
      { at: T0 + 90_000, reason: 'max-lifetime' },
    ],
    ['not for idleness while a command is under way', 5_000, 0, 1, undefined],
    [
      'by its life even while a command is under way',
      5_000,
      90_000,
      2,
      { at: T0 + 90_000, reason: 'max-lifetime' },
    ],
  ] as const) {
    it(fact, () =>
      expect(
        expiryOf(aClaim({ claimedAt: T0, idleTimeoutMs, maxLifetimeMs }), active, working),
      ).to.deep.equal(expected),
    );
  }
});

describe('the status of a sandbox', () => {
  const cases: readonly (readonly [string, string, Partial<SandboxContext>, SandboxStatus])[] = [
    ['Starting before it is ready', 'starting', {}, 'Starting'],
    [
      'Stopping when it was told to end before it is known to have begun',
      'starting',
      { end: ended('retired') },
      'Stopping',
    ],
    ['Idle when it is', 'idle', {}, 'Idle'],
    ['Idle while a claim is under way', 'claiming', {}, 'Idle'],
    ['Running when it is', 'running', {}, 'Running'],
    [
      'Stopping when it is given back',
      'stopping',
      { record: aRecord({ state: 'claimed', claim: aClaim() }), end: ended('deleted') },
      'Stopping',
    ],
    [
      'Stopping when a claimed one died',
      'stopping',
      { record: aRecord({ state: 'claimed', claim: aClaim() }), end: ended('exited', 1) },
      'Stopping',
    ],
    ['Stopping when nobody needed it', 'stopping', { end: ended('retired') }, 'Stopping'],
    [
      'Stopping when its start took too long',
      'stopping',
      { end: ended('start-failed') },
      'Stopping',
    ],
    [
      'Failed when it died unclaimed',
      'stopping',
      { end: ended('exited', 1), gone: { at: T0, exitCode: 1 } },
      'Failed',
    ],
    [
      'Failed when it did not start',
      'stopping',
      { record: undefined, end: ended('start-failed'), gone: { at: T0, exitCode: 1 } },
      'Failed',
    ],
    ['Completed at last', 'completed', {}, 'Completed'],
  ];
  for (const [fact, state, part, expected] of cases)
    it(`is ${fact}`, () => expect(statusOf(state, context(part))).to.equal(expected));
});

describe('the history of a sandbox', () => {
  it('is empty if nobody claimed the sandbox', () => {
    expect(finishedOf(context(), aRecord())).to.equal(undefined);
    expect(finishedOf(context(), undefined)).to.equal(undefined);
  });

  it('names the owner, the end and its reason', () => {
    const record = aRecord({ state: 'ending', claim: aClaim({ claimedAt: T0 + 5 }) });
    const finished = finishedOf(
      context({ end: ended('exited', 3), gone: { at: T0 + 90, exitCode: 3 }, startedAt: T0 + 1 }),
      record,
    );
    expect(finished).to.deep.equal({
      id: 'one',
      poolUid: 'pool-uid',
      poolName: 'default',
      owner: ALICE,
      createdAt: T0,
      claimedAt: T0 + 5,
      startedAt: T0 + 1,
      terminatedAt: T0 + 90,
      recycledAt: T0 + 90,
      cpu: '1',
      memory: '128Mi',
      containerImages: { main: 'host' },
      endReason: 'exited',
      exitCode: 3,
    });
  });

  it('records a loss if the end is unknown', () => {
    const finished = finishedOf(
      context(),
      aRecord({ state: 'claimed', claim: aClaim({ claimedAt: T0 + 5 }) }),
    );
    expect(finished).to.include({ endReason: 'lost', exitCode: null, terminatedAt: T0 + 5 });
  });
});

describe('the identity of a claim', () => {
  it('is its owner and its request, at any time', () => {
    const [mark, other] = [
      { key: 'k', body: 'b' },
      { key: 'l', body: 'b' },
    ];
    expect(sameClaim(aClaim({ mark }), aClaim({ mark, claimedAt: T0 + 9 }))).to.equal(true);
    expect(sameClaim(aClaim({ mark }), aClaim({ mark: other }))).to.equal(false);
    expect(sameClaim(aClaim({ mark }), aClaim())).to.equal(false);
  });

  it('is its owner and its time, without a request', () => {
    expect(sameClaim(aClaim(), aClaim({ idleTimeoutMs: 7 }))).to.equal(true);
    expect(sameClaim(aClaim(), aClaim({ claimedAt: T0 + 9 }))).to.equal(false);
    for (const key of ['namespace', 'team', 'user'] as const)
      expect(sameClaim(aClaim(), aClaim({ owner: { ...ALICE, [key]: 'other' } })), key).to.equal(
        false,
      );
    expect(sameClaim(undefined, undefined)).to.equal(false);
  });
});

describe('the end of a sandbox', () => {
  it('counts as ours after a deletion or a timeout', () => {
    const reasons: readonly EndReason[] = END_REASONS;
    expect(reasons.filter((reason) => isOurDoing(ended(reason)))).to.deep.equal([
      'deleted',
      'force-deleted',
      'idle-timeout',
      'max-lifetime',
      'claim-failed',
    ]);
    expect(isOurDoing(undefined)).to.equal(false);
  });
});
