import { expect } from 'chai';
import { createActor } from 'xstate';
import { MAKING_MS, memberStateOf, pauseAfter } from '../../src/machines/env/member-decisions.ts';
import { pathOf } from '../../src/actors/runtime/actor-host.ts';
import type {
  MemberEvent,
  MemberFact,
  MemberIntent,
} from '../../src/machines/env/member-events.ts';
import { envMemberMachine } from '../../src/machines/env/member-machine.ts';
import type { EnvMember, EnvRecord } from '../../src/model/envs/env.ts';
import { memberPoolPart } from '../../src/model/envs/env-rendering.ts';
import { type PoolRecord } from '../../src/model/pools/pool.ts';
import { aStoredPool } from '../support/builders/a-pool.ts';
import { ALICE } from '../support/builders/instance-orders.ts';

const T0 = 1_000_000;

const aMember = (part: Partial<EnvMember> = {}): EnvMember => ({
  name: 'm',
  clusterId: 'local',
  createdAt: 0,
  replicas: 1,
  config: {},
  deleting: false,
  ...part,
});
const anEnv = (part: Partial<EnvRecord> = {}): EnvRecord => ({
  uid: 'e',
  revision: '1',
  name: 'e',
  owner: ALICE,
  createdAt: 0,
  labels: {},
  annotations: {},
  templateRef: { name: 't' },
  mode: 'WarmPool',
  overrides: {},
  members: [],
  groups: [],
  scaling: {},
  conditions: [],
  deleting: false,
  ...part,
});
const aMemberPool = (part: Partial<PoolRecord> = {}): PoolRecord =>
  aStoredPool({
    uid: 'p',
    name: 'm',
    createdAt: 0,
    env: { uid: 'e', name: 'e' },
    replicas: 1,
    ...memberPoolPart(anEnv(), aMember()),
    updateRevision: 'r',
    ...part,
  });
const aFact = (part: Partial<MemberFact> = {}): MemberFact => ({
  env: anEnv(),
  member: aMember(),
  pool: aMemberPool(),
  saturatedUntil: 0,
  ...part,
});

/** A member that leads, with all that it has asked for. */
const aHosted = (fact: MemberFact, leads = true) => {
  const asked: MemberIntent[] = [];
  const actor = createActor(envMemberMachine, { input: { fact, localCluster: 'local', now: T0 } });
  actor.on('*', (intent) => {
    asked.push(intent);
  });
  actor.start();
  if (leads) actor.send({ type: 'LEAD', now: T0 });
  return {
    asked,
    send: (event: MemberEvent) => {
      actor.send(event);
    },
    state: () => memberStateOf(actor.getSnapshot().context),
    path: () => pathOf(actor.getSnapshot().value),
    deadline: () => actor.getSnapshot().context.deadline,
  };
};

describe('a member of an env', () => {
  for (const [state, fact] of [
    ['Active', aFact()],
    ['Pending', aFact({ pool: undefined })],
    ['Saturated', aFact({ saturatedUntil: T0 + 1 })],
    ['Draining', aFact({ member: aMember({ deleting: 'force' }) })],
    ['Draining', aFact({ env: anEnv({ deleting: 'keep-running' }) })],
    ['Draining', aFact({ env: undefined, member: undefined })],
    ['Unreachable', aFact({ member: aMember({ clusterId: 'far' }), pool: undefined })],
  ] as const) {
    it(`is ${state} according to its env and its pool`, () => {
      expect(aHosted(fact, false).state()).to.equal(state);
    });
  }

  it('requests missing changes only, and none while another replica leads', () => {
    const later = aFact({ member: aMember({ config: { labels: { a: 'b' } } }) });
    expect(aHosted(aFact()).asked).to.deep.equal([]);
    expect(aHosted(aFact({ pool: undefined })).asked).to.deep.equal([{ type: 'make-pool' }]);
    expect(aHosted(later).asked).to.deep.equal([{ type: 'settle-pool' }]);
    expect(aHosted(later, false).asked).to.deep.equal([]);
    expect(
      aHosted(aFact({ member: aMember({ clusterId: 'far' }), pool: undefined })).asked,
    ).to.deep.equal([]);
  });

  it('deletes its pool, then its record, then ends', () => {
    const hosted = aHosted(aFact({ member: aMember({ deleting: 'keep-running' }) }));
    hosted.send({ type: 'CARRIED_OUT', now: T0 });
    hosted.send({
      type: 'FACT',
      fact: aFact({ member: aMember({ deleting: 'keep-running' }), pool: undefined }),
      now: T0,
    });

    expect(hosted.asked).to.deep.equal([{ type: 'end-pool', force: false }, { type: 'forget' }]);
    hosted.send({ type: 'FACT', fact: aFact({ member: undefined, pool: undefined }), now: T0 });
    expect(hosted.path()).to.equal('gone');
  });

  it('adds force to a deletion that began without', () => {
    const pool = aMemberPool({ deleting: 'keep-running' });
    expect(
      aHosted(aFact({ member: aMember({ deleting: 'keep-running' }), pool })).asked,
    ).to.deep.equal([]);
    expect(aHosted(aFact({ member: aMember({ deleting: 'force' }), pool })).asked).to.deep.equal([
      { type: 'end-pool', force: true },
    ]);
  });

  it('gives the request that added it time to create its pool', () => {
    const hosted = aHosted(aFact({ member: aMember({ createdAt: T0 }), pool: undefined }));
    expect([hosted.asked, hosted.deadline()]).to.deep.equal([[], T0 + MAKING_MS]);

    hosted.send({ type: 'DEADLINE', now: T0 + MAKING_MS });
    expect(hosted.asked).to.deep.equal([{ type: 'make-pool' }]);
  });

  it('makes one request at a time: retries after growing pauses, and a new request at once', () => {
    const fact = aFact({ pool: undefined });
    const hosted = aHosted(fact);
    hosted.send({ type: 'FACT', fact, now: T0 });
    expect(hosted.asked).to.have.length(1);

    let now = T0;
    for (const times of [1, 2, 3]) {
      hosted.send({ type: 'NOT_CARRIED_OUT', reason: 'NameTaken', why: 'taken', now });
      expect([hosted.state(), hosted.deadline()]).to.deep.equal(['Error', now + pauseAfter(times)]);
      hosted.send({ type: 'DEADLINE', now: (now += pauseAfter(times)) });
    }
    expect(hosted.asked).to.have.length(4);
    hosted.send({ type: 'NOT_CARRIED_OUT', reason: 'NameTaken', why: 'taken', now });
    hosted.send({
      type: 'FACT',
      fact: aFact({ member: aMember({ config: { multiplier: 2 } }), pool: undefined }),
      now,
    });
    expect(hosted.asked).to.have.length(5);
    expect([pauseAfter(1), pauseAfter(100)]).to.deep.equal([2_000, 60_000]);
  });

  it('waits for an answer in a single state, pauses after a failure, and then rests', () => {
    const hosted = aHosted(aFact({ pool: undefined }));
    expect(hosted.path()).to.equal('leading.asking');
    hosted.send({ type: 'NOT_CARRIED_OUT', reason: 'NameTaken', why: 'taken', now: T0 });
    expect(hosted.path()).to.equal('leading.pausing');
    hosted.send({ type: 'CARRIED_OUT', now: T0 });
    expect([hosted.path(), hosted.state()]).to.deep.equal(['leading.pausing', 'Error']);
    hosted.send({ type: 'DEADLINE', now: T0 + pauseAfter(1) });
    hosted.send({ type: 'CARRIED_OUT', now: T0 + pauseAfter(1) });
    hosted.send({ type: 'FACT', fact: aFact(), now: T0 + pauseAfter(1) });
    expect([hosted.path(), hosted.state()]).to.deep.equal(['leading.settled', 'Active']);
  });

  it('requests nothing while it follows, and starts again when it leads', () => {
    const hosted = aHosted(aFact({ pool: undefined }));
    hosted.send({ type: 'FOLLOW' });
    hosted.send({ type: 'CARRIED_OUT', now: T0 });
    hosted.send({ type: 'FACT', fact: aFact({ pool: undefined }), now: T0 });
    expect([hosted.path(), hosted.asked.length]).to.deep.equal(['following', 1]);
    hosted.send({ type: 'LEAD', now: T0 });
    expect([hosted.path(), hosted.asked.length]).to.deep.equal(['leading.asking', 2]);
  });

  it('can grow again after its saturation ends, as leader or follower', () => {
    for (const leads of [true, false]) {
      const hosted = aHosted(aFact({ saturatedUntil: T0 + 5 }), leads);
      expect([hosted.state(), hosted.deadline()]).to.deep.equal(['Saturated', T0 + 5]);
      hosted.send({ type: 'DEADLINE', now: T0 + 5 });
      expect([hosted.state(), hosted.deadline()]).to.deep.equal(['Active', undefined]);
    }
  });
});
