import { expect } from 'chai';
import {
  fleetViolationsOf,
  type FleetEvidence,
  type SeenEnv,
} from '../support/chaos/fleet/fleet-verdict.ts';
import type { Answer, Asked, Call } from '../support/chaos/history.ts';

/** Calls one after the other; each takes 10 ms. */
const callsOf = (...asked: readonly (readonly [Asked, Answer?])[]): readonly Call[] =>
  asked.map(([what, answer], n) => ({
    ...{ user: 'default', replica: 0, asked: what },
    ...{ invoked: n * 100, completed: n * 100 + 10 },
    answer,
  }));
const claim = (name: string): Asked => ({ what: 'claim', pool: 'w1::work', name, key: name });
const got = (id: string): Answer => ({ status: 201, id, shows: 'Running' });
const [A, B] = ['w1.a', 'w2.b'];
const remove = (id: string): Asked => ({ what: 'delete', id });
const DONE: Answer = { status: 200 };

const WHOLE = { name: 'dev-w1', state: 'Active', desired: 4, current: 4 };
const GOOD_ENV: SeenEnv = {
  ...{ clusterId: 'w1', member: 'dev-w1', most: 6, copies: 1 },
  pools: [{ name: 'dev-w1', replicas: 4 }],
  shown: [
    { where: 'w1', members: [WHOLE] },
    { where: 'replica-0', members: [{ ...WHOLE, state: 'Saturated' }] },
  ],
};

const GOOD: FleetEvidence = {
  calls: callsOf(
    [claim('one')],
    [claim('one'), got(A)],
    [claim('one'), got(A)],
    [claim('two'), { status: 503, errorCode: 'CLUSTER_UNAVAILABLE' }],
    [claim('three'), got(B)],
    [remove(B)],
    [remove(B), { status: 404, errorCode: 'SANDBOX_NOT_FOUND' }],
    [
      { what: 'get', id: A },
      { status: 200, shows: 'Running' },
    ],
  ),
  known: [
    { id: A, name: 'one', isRunning: true },
    { id: B, name: 'three', isRunning: false },
    { id: 'w2.c', isRunning: false },
  ],
  listed: [new Set([A]), new Set([A])],
  effects: [
    {
      id: A,
      sent: [
        { mark: 'm', isAnswered: true },
        { mark: 'lost', isAnswered: false },
      ],
      found: ['m'],
    },
  ],
  keys: [
    { keyId: 'k', isGood: true, answers: [{ where: 'w1', status: 200 }] },
    { keyId: 'r', isGood: false, answers: [{ where: 'w1', status: 401 }] },
  ],
  envs: [GOOD_ENV],
  linked: { afterMs: 10_000, withinMs: 10_000 },
};

/** Which promises are broken where this part of the evidence is another. */
const brokenBy = (part: Partial<FleetEvidence>): readonly string[] => [
  ...new Set(fleetViolationsOf({ ...GOOD, ...part }).map(({ promise }) => promise)),
];
const also = (...more: readonly (readonly [Asked, Answer?])[]): readonly Call[] => [
  ...GOOD.calls,
  ...callsOf(...more).map((call) => ({
    ...call,
    invoked: call.invoked + 10_000,
    completed: call.completed + 10_000,
  })),
];

describe('the verdict on a run over a fleet', () => {
  it('accepts lost answers and refused links', () => {
    expect(fleetViolationsOf(GOOD)).to.deep.equal([]);
  });

  it('reports a sandbox handed out to two claims', () => {
    expect(brokenBy({ calls: also([claim('four'), got(A)]) })).to.deep.equal(['handed out once']);
  });

  it('reports a claim that took effect on two clusters, even if one answer was lost', () => {
    const known = [...GOOD.known, { id: 'w2.d', name: 'one', isRunning: false }];
    expect(brokenBy({ known })).to.deep.equal(['one effect per claim']);
  });

  it('reports an acknowledged change that is missing', () => {
    const [, ...rest] = GOOD.known;
    const gone = [{ id: A, name: 'one', isRunning: false }, ...rest];
    expect(brokenBy({ known: gone })).to.deep.equal(['nothing lost']);
    expect(brokenBy({ listed: [new Set([A]), new Set()] })).to.deep.equal(['nothing lost']);
    expect(brokenBy({ calls: also([remove(A), DONE]) })).to.deep.equal(['nothing lost']);
  });

  it('reports a denial of an existing sandbox', () => {
    const away: Answer = { status: 404, errorCode: 'CLUSTER_NOT_FOUND' };
    const none: Answer = { status: 404, errorCode: 'SANDBOX_NOT_FOUND' };
    for (const call of [
      [{ what: 'get', id: A }, none],
      [{ what: 'get', id: B }, away],
      [claim('five'), { status: 404, errorCode: 'POOL_NOT_FOUND' }],
    ] as const)
      expect(brokenBy({ calls: also(call) })).to.deep.equal(['nothing denied']);
    const removed = also([remove(A), none]);
    expect(brokenBy({ calls: removed })).to.deep.equal(['nothing denied']);
  });

  it('reports an answer without a reason', () => {
    const calls = also([claim('six'), { status: 500 }]);
    expect(brokenBy({ calls })).to.deep.equal(['no internal error']);
  });

  it('reports a command that ran twice, or never although it was answered', () => {
    const [effects] = GOOD.effects;
    for (const found of [['m', 'm'], ['m', 'lost', 'lost'], []])
      expect(brokenBy({ effects: [{ ...effects!, found }] })).to.deep.equal([
        'one effect per command',
      ]);
  });

  it('reports a key that works differently on one of the addresses', () => {
    const answers = [
      { where: 'w1', status: 200 },
      { where: 'w2', status: 401 },
    ];
    for (const isGood of [true, false])
      expect(brokenBy({ keys: [{ keyId: 'k', isGood, answers }] })).to.deep.equal([
        'keys right everywhere',
      ]);
  });

  it('reports a link that comes back late', () => {
    expect(brokenBy({ linked: { afterMs: 10_001, withinMs: 10_000 } })).to.deep.equal([
      'linked soon',
    ]);
  });

  it('reports an env that a cluster has twice or without its pool', () => {
    const pool = { name: 'dev-w1', replicas: 4 };
    const more = { ...pool, replicas: 7 };
    const tooMany = [{ where: 'w1', members: [{ ...WHOLE, desired: 7, current: 7 }] }];
    for (const part of [
      { copies: 0 },
      { copies: 2 },
      { pools: [] },
      { pools: [pool, { name: 'dev-w2', replicas: 4 }] },
      { pools: [{ ...pool, name: 'dev-w2' }] },
      { pools: [more], shown: tooMany },
    ])
      expect(brokenBy({ envs: [{ ...GOOD_ENV, ...part }] }), JSON.stringify(part)).to.deep.equal([
        'envs alike',
      ]);
  });

  it('reports an env that either side shows incorrectly', () => {
    for (const members of [
      [],
      [WHOLE, { ...WHOLE, name: 'dev-w2' }],
      [{ ...WHOLE, name: 'dev-w2' }],
      [{ ...WHOLE, state: 'Unreachable' }],
      [{ ...WHOLE, desired: 3 }],
      [{ ...WHOLE, current: 5 }],
    ])
      for (const n of [0, 1]) {
        const shown = GOOD_ENV.shown.map((each, at) => (at === n ? { ...each, members } : each));
        expect(brokenBy({ envs: [{ ...GOOD_ENV, shown }] }), JSON.stringify(shown)).to.deep.equal([
          'envs alike',
        ]);
      }
  });
});
