import { expect } from 'chai';
import {
  planRollout,
  type RolloutInput,
  type RolloutPlan,
} from '../../src/machines/pool/arithmetic.ts';
import {
  MAX_UNAVAILABLE_PATTERN,
  maxUnavailableOf,
} from '../../src/model/pools/max-unavailable.ts';
import { CLOSED_BREAKER, type BreakerStatus } from '../../src/model/pools/pool.ts';
import { aPolicy, counts, T0 } from './examples.ts';

const policy = aPolicy({ refill: { perSecond: 2, burst: 50, inFlight: 16 } });
const failed = (failures: number, pausedUntil: number): BreakerStatus => ({
  failures,
  pausedUntil,
  reason: 'no',
});

describe('the number of old instances that may be replaced now', () => {
  const asked = (part: Partial<RolloutInput>): RolloutInput => ({
    wanted: 100,
    counts: counts({ idle: 100 }),
    updated: counts(),
    ordered: 0,
    missing: 0,
    maxUnavailable: '25%',
    bucket: { tokens: 50, at: T0 },
    inFlight: 16,
    breaker: CLOSED_BREAKER,
    proven: true,
    provenAt: 0,
    now: T0,
    ...part,
  });
  const none = { starting: 0, unavailable: 0, idle: 0, wakeAt: undefined };

  const cases: readonly (readonly [string, Partial<RolloutInput>, Partial<RolloutPlan>])[] = [
    ['none once all have the current revision', { updated: counts({ idle: 100 }) }, {}],
    ['as many ready ones as starts have room', {}, { idle: 16 }],
    ['as many as may be unavailable', { maxUnavailable: '5%' }, { idle: 5 }],
    ['as many as may be unavailable, as a number', { maxUnavailable: '3' }, { idle: 3 }],
    [
      'one where the percentage is less than one',
      { wanted: 3, counts: counts({ idle: 3 }) },
      { idle: 1 },
    ],
    ['no more than there are of older revisions', { updated: counts({ idle: 98 }) }, { idle: 2 }],
    [
      'less those that start',
      {
        maxUnavailable: '5',
        counts: counts({ idle: 97, starting: 3 }),
        updated: counts({ starting: 3 }),
      },
      { idle: 2 },
    ],
    [
      'less those that are unavailable',
      {
        maxUnavailable: '5',
        counts: counts({ idle: 96, unavailable: 4 }),
        updated: counts({ unavailable: 4 }),
      },
      { idle: 1 },
    ],
    [
      'less those that are ordered',
      { maxUnavailable: '5', counts: counts({ idle: 95 }), ordered: 5 },
      {},
    ],
    [
      'none while others are missing for want of starts',
      { counts: counts({ idle: 80 }), missing: 20 },
      {},
    ],
    ['as many as there are tokens', { bucket: { tokens: 4.5, at: T0 } }, { idle: 4 }],
    [
      'none without a token, and again when there is one',
      { bucket: { tokens: 0.5, at: T0 } },
      { wakeAt: T0 + 250 },
    ],
    [
      'those that start, though nothing ready may go',
      { maxUnavailable: '5', wanted: 10, counts: counts({ starting: 10 }), updated: counts() },
      { starting: 5 },
    ],
    [
      'those that start, though others wait for their places',
      { wanted: 100, counts: counts({ starting: 16 }), missing: 84 },
      { starting: 16 },
    ],
    [
      'those that are unavailable, some at a time',
      { maxUnavailable: '5', counts: counts({ idle: 90, unavailable: 10 }) },
      { unavailable: 5 },
    ],
    [
      'none while the breaker pauses, and again when it is over',
      { breaker: failed(3, T0 + 700) },
      { wakeAt: T0 + 700 },
    ],
    ['none while there is no place', { breaker: failed(0, T0 + 700) }, { wakeAt: T0 + 700 }],
    ['one after the pause, where none is missing', { breaker: failed(3, T0) }, { idle: 1 }],
    [
      'none after the pause before the last that started has shown whether it lives',
      { breaker: failed(3, T0), provenAt: T0 + 9 },
      { wakeAt: T0 + 9 },
    ],
    [
      'none after the pause while another is tried',
      {
        breaker: failed(3, T0),
        counts: counts({ idle: 99, starting: 1 }),
        updated: counts({ starting: 1 }),
      },
      {},
    ],
    [
      'none after the pause while one is missing',
      { breaker: failed(3, T0), counts: counts({ idle: 99 }), missing: 1 },
      {},
    ],
    [
      'as many as may be unavailable, of a revision that has not shown that it lives',
      { proven: false, maxUnavailable: '5' },
      { idle: 5 },
    ],
    [
      'none beside those that have not shown it yet, until then',
      { proven: false, maxUnavailable: '5', updated: counts({ idle: 5 }), provenAt: T0 + 9 },
      { wakeAt: T0 + 9 },
    ],
    [
      'less those that have not shown it yet',
      { proven: false, maxUnavailable: '5', updated: counts({ idle: 2 }), provenAt: T0 + 9 },
      { idle: 3, wakeAt: T0 + 9 },
    ],
    [
      'none that starts after failures: it shows by itself',
      { breaker: failed(3, T0), counts: counts({ idle: 90, starting: 10 }) },
      {},
    ],
  ];
  for (const [fact, input, expected] of cases)
    it(fact, () =>
      expect(planRollout(asked(input), policy)).to.deep.equal({ ...none, ...expected }),
    );
});

describe('maxUnavailable', () => {
  for (const [text, wanted, expected] of [
    ['25%', 100, 25],
    ['25%', 7, 1],
    ['25%', 3, 1],
    ['50%', 3, 1],
    ['99%', 100, 99],
    ['100%', 4, 4],
    ['0%', 4, 1],
    ['25%', 0, 1],
    ['3', 2, 3],
    ['0', 2, 1],
  ] as const) {
    it(`${text} of ${wanted} is ${expected}`, () => {
      expect(text).to.match(MAX_UNAVAILABLE_PATTERN);
      expect(maxUnavailableOf(text, wanted)).to.equal(expected);
    });
  }
  for (const text of ['', '%', '-1', '101%', '2.5', '25 %', 'x', '1e3', '123456']) {
    it(`is not "${text}"`, () => expect(text).to.not.match(MAX_UNAVAILABLE_PATTERN));
  }
});
