import { expect } from 'chai';
import {
  afterFailure,
  phaseOf,
  planScale,
  presentOf,
  refilled,
  type PhaseInput,
  type ScaleInput,
  type ScalePlan,
} from '../../src/machines/pool/arithmetic.ts';
import { CLOSED_BREAKER, type BreakerStatus, type PoolPhase } from '../../src/model/pools/pool.ts';
import { aPolicy, counts, T0 } from './examples.ts';

const policy = aPolicy({ refill: { perSecond: 2, burst: 5, inFlight: 4 } });

describe('the number of instances to launch and to retire', () => {
  const asked = (part: Partial<ScaleInput>): ScaleInput => ({
    replicas: 3,
    counts: counts(),
    ordered: 0,
    bucket: { tokens: 5, at: T0 },
    inFlight: 4,
    breaker: CLOSED_BREAKER,
    now: T0,
    ...part,
  });
  const tripped = (pausedUntil: number): BreakerStatus => ({
    failures: 3,
    pausedUntil,
    reason: 'no',
  });
  type Expected = Pick<ScalePlan, 'launch' | 'retire' | 'wakeAt'>;

  const cases: readonly (readonly [string, Partial<ScaleInput>, Expected])[] = [
    ['launches what is missing', {}, { launch: 3, retire: 0, wakeAt: undefined }],
    ['counts what is ordered', { ordered: 2 }, { launch: 1, retire: 0, wakeAt: undefined }],
    [
      'counts the starting, idle, unavailable and running',
      { replicas: 5, counts: counts({ starting: 1, idle: 1, unavailable: 1, running: 1 }) },
      { launch: 1, retire: 0, wakeAt: undefined },
    ],
    [
      'counts neither the stopping nor the failed',
      { counts: counts({ stopping: 2, failed: 2 }) },
      { launch: 3, retire: 0, wakeAt: undefined },
    ],
    [
      'launches nothing in the place of what is not gone yet',
      { counts: counts({ retiring: 2 }) },
      { launch: 1, retire: 0, wakeAt: undefined },
    ],
    [
      'retires none for what goes anyhow',
      { counts: counts({ idle: 3, retiring: 2 }) },
      { launch: 0, retire: 0, wakeAt: undefined },
    ],
    [
      'rests when all are there',
      { counts: counts({ idle: 1, running: 2 }) },
      { launch: 0, retire: 0, wakeAt: undefined },
    ],
    [
      'retires what is too much',
      { counts: counts({ idle: 4, running: 1 }) },
      { launch: 0, retire: 2, wakeAt: undefined },
    ],
    [
      'retires the unclaimed alone',
      { replicas: 0, counts: counts({ idle: 1, running: 4 }) },
      { launch: 0, retire: 1, wakeAt: undefined },
    ],
    [
      'starts no more at once than may be in flight',
      { replicas: 9, counts: counts({ starting: 1 }), ordered: 1 },
      { launch: 2, retire: 0, wakeAt: undefined },
    ],
    [
      'waits while as many start as may',
      { replicas: 9, counts: counts({ starting: 4 }) },
      { launch: 0, retire: 0, wakeAt: undefined },
    ],
    [
      'launches what there are tokens for, and wakes for the next',
      { bucket: { tokens: 1, at: T0 } },
      { launch: 1, retire: 0, wakeAt: T0 + 500 },
    ],
    [
      'wakes when a part of a token has become a whole one',
      { bucket: { tokens: 0.5, at: T0 } },
      { launch: 0, retire: 0, wakeAt: T0 + 250 },
    ],
    [
      'refills the bucket before it looks',
      { bucket: { tokens: 0, at: T0 - 1_000 } },
      { launch: 2, retire: 0, wakeAt: T0 + 500 },
    ],
    [
      'launches nothing while the breaker pauses, and wakes when it is over',
      { breaker: tripped(T0 + 700) },
      { launch: 0, retire: 0, wakeAt: T0 + 700 },
    ],
    [
      'retires while the breaker pauses',
      { replicas: 0, counts: counts({ idle: 1 }), breaker: tripped(T0 + 700) },
      { launch: 0, retire: 1, wakeAt: undefined },
    ],
    [
      'tries one after the pause',
      { breaker: tripped(T0) },
      { launch: 1, retire: 0, wakeAt: undefined },
    ],
    [
      'tries no second one before the first has started',
      { breaker: tripped(T0), counts: counts({ starting: 1 }) },
      { launch: 0, retire: 0, wakeAt: undefined },
    ],
    [
      'goes on at full pace after fewer failures than trip it',
      { breaker: { failures: 2, pausedUntil: 0, reason: 'no' } },
      { launch: 3, retire: 0, wakeAt: undefined },
    ],
  ];
  for (const [fact, input, expected] of cases) {
    it(fact, () => {
      const { launch, retire, wakeAt } = planScale(asked(input), policy);
      expect({ launch, retire, wakeAt }).to.deep.equal(expected);
    });
  }

  it('uses one token for each launch', () => {
    expect(planScale(asked({}), policy).bucket).to.deep.equal({ tokens: 2, at: T0 });
  });

  it('ignores running sandboxes if replicas counts only unclaimed instances', () => {
    const idle = { ...policy, replicaSemantics: 'idle' as const };
    expect(planScale(asked({ counts: counts({ running: 3, idle: 1 }) }), idle).launch).to.equal(2);
    expect(presentOf(counts({ running: 3, idle: 1, starting: 1 }), 1, 'idle')).to.equal(3);
    expect(presentOf(counts({ running: 3, idle: 1, starting: 1 }), 1, 'total')).to.equal(6);
  });
});

describe('the token bucket', () => {
  for (const [fact, bucket, now, expected] of [
    [
      'fills by the time that passed',
      { tokens: 1, at: T0 },
      T0 + 1_500,
      { tokens: 4, at: T0 + 1_500 },
    ],
    [
      'holds no more than its burst',
      { tokens: 4, at: T0 },
      T0 + 60_000,
      { tokens: 5, at: T0 + 60_000 },
    ],
    [
      'loses nothing when the clock steps back',
      { tokens: 1, at: T0 },
      T0 - 5_000,
      { tokens: 1, at: T0 },
    ],
  ] as const) {
    it(fact, () => expect(refilled(bucket, now, policy.refill)).to.deep.equal(expected));
  }
});

describe('the breaker', () => {
  const after = (failures: number, pausedUntil: number) =>
    afterFailure(
      { failures, pausedUntil, reason: '' },
      { reason: 'no image', now: T0 },
      policy.breaker,
    );

  for (const [fact, failures, pausedUntil, expected] of [
    ['counts the first failure without a pause', 0, 0, { failures: 1, pausedUntil: 0 }],
    ['pauses at the number that trips it', 2, 0, { failures: 3, pausedUntil: T0 + 1_000 }],
    ['doubles the pause with each failed try', 3, T0 - 1, { failures: 4, pausedUntil: T0 + 2_000 }],
    ['goes no higher than the longest pause', 9, T0 - 1, { failures: 10, pausedUntil: T0 + 8_000 }],
    [
      'neither counts nor stretches for failures while it pauses',
      3,
      T0 + 300,
      { failures: 3, pausedUntil: T0 + 300 },
    ],
    [
      'stays finite after any number of failures',
      1_000,
      T0 - 1,
      { failures: 1_000, pausedUntil: T0 + 8_000 },
    ],
  ] as const) {
    it(fact, () =>
      expect(after(failures, pausedUntil)).to.deep.equal({ ...expected, reason: 'no image' }),
    );
  }

  it('pauses for at most 8 s after a refusal, so that the pool fills soon after the cause ends', () => {
    const long = { ...policy.breaker, maxPauseMs: 300_000 };
    const { pausedUntil } = afterFailure(
      { failures: 20, pausedUntil: 0, reason: '' },
      { reason: 'forbidden', now: T0, isRefused: true },
      long,
    );
    expect(pausedUntil).to.equal(T0 + 8_000);
    expect(
      afterFailure(
        { failures: 20, pausedUntil: 0, reason: '' },
        { reason: 'no image', now: T0 },
        long,
      ).pausedUntil,
    ).to.equal(T0 + 300_000);
  });

  it('keeps at most 500 characters of the reason', () => {
    expect(
      afterFailure(CLOSED_BREAKER, { reason: 'x'.repeat(9_000), now: T0 }, policy.breaker).reason,
    ).to.have.length(500);
  });
});

describe('the phase of a pool', () => {
  const shown = (part: Partial<PhaseInput>): PoolPhase =>
    phaseOf(
      {
        record: { replicas: 2, deleting: false },
        counts: counts(),
        ordered: 0,
        breaker: CLOSED_BREAKER,
        filledOnce: false,
        rolling: false,
        ...part,
      },
      policy,
    );
  const open: BreakerStatus = { failures: 3, pausedUntil: T0, reason: 'no' };

  const cases: readonly (readonly [string, Partial<PhaseInput>, PoolPhase])[] = [
    ['Pending until it was filled once', { counts: counts({ starting: 1, idle: 1 }) }, 'Pending'],
    [
      'Ready when all are there and ready or running',
      { counts: counts({ idle: 1, running: 1 }) },
      'Ready',
    ],
    ['Ready at no replicas', { record: { replicas: 0, deleting: false } }, 'Ready'],
    [
      'Scaling when one is missing later on',
      { counts: counts({ idle: 1 }), filledOnce: true },
      'Scaling',
    ],
    ['Scaling while one is too much', { counts: counts({ idle: 3 }), filledOnce: true }, 'Scaling'],
    [
      'Scaling while one is ordered',
      { counts: counts({ idle: 1 }), ordered: 1, filledOnce: true },
      'Scaling',
    ],
    [
      'Degraded when one is not answering',
      { counts: counts({ idle: 1, unavailable: 1 }) },
      'Degraded',
    ],
    [
      'Degraded when starts fail and something is usable',
      { counts: counts({ running: 1 }), breaker: open },
      'Degraded',
    ],
    [
      'Failed when starts fail and nothing is usable',
      { counts: counts({ starting: 1, unavailable: 1 }), breaker: open },
      'Failed',
    ],
    [
      'Updating while instances are replaced',
      { counts: counts({ idle: 2 }), filledOnce: true, rolling: true },
      'Updating',
    ],
    [
      'Degraded while the revision that is to replace them can not start',
      { counts: counts({ idle: 2 }), filledOnce: true, rolling: true, breaker: open },
      'Degraded',
    ],
    [
      'Deleting whatever else is so',
      {
        record: { replicas: 2, deleting: 'keep-running' },
        breaker: open,
        counts: counts({ idle: 2 }),
      },
      'Deleting',
    ],
  ];
  for (const [fact, input, expected] of cases)
    it(`is ${fact}`, () => expect(shown(input)).to.equal(expected));
});
