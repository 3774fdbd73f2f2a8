import { expect } from 'chai';
import {
  ANSWER_MS,
  EVALUATION_MS,
  REST_MS,
  STALE_MS,
  WAKE_MS,
} from '../../src/machines/autoscaling/group-machine.ts';
import type { GroupEvent } from '../../src/machines/autoscaling/group-events.ts';
import type { ScalingDecision } from '../../src/model/envs/scaling-decision.ts';
import { aGroup, aMember, aMemory, aRule } from './autoscaling-examples.ts';
import { AnAutoscalingGroup, theWords } from './an-autoscaling-group.ts';

const T = 10_000_000;
const wanting = aGroup({ up: { mode: 'Aggressive' } });
const observed = (now: number, ...members: readonly ReturnType<typeof aMember>[]): GroupEvent => ({
  type: 'OBSERVED',
  members,
  now,
});
const aDecision = (parts: Partial<ScalingDecision> = {}): ScalingDecision => ({
  id: T,
  at: T,
  cause: 'demand',
  changes: [{ member: 'a', from: 4, to: 6 }],
  seen: { desired: 4, running: 4, idle: 0, starting: 0, pending: 0 },
  wanted: 6,
  reason: '',
  limitedBy: [],
  ...parts,
});

/** One that leads and has decided on 4 to 6, and asked to save that. */
const deciding = (): AnAutoscalingGroup =>
  new AnAutoscalingGroup(theWords({ group: wanting })).send(
    { type: 'LEAD', now: T },
    observed(T, aMember({ running: 4 })),
  );

describe('the machine of an autoscaling group', () => {
  it('decides nothing until it leads', () => {
    const group = new AnAutoscalingGroup(theWords({ group: wanting })).send(
      observed(T, aMember({ running: 4 })),
    );

    expect(group.state).to.equal('following');
    expect(group.asked).to.deep.equal([]);
  });

  it('evaluates when it begins to lead, and every 5 s after that', () => {
    const group = new AnAutoscalingGroup().send({ type: 'LEAD', now: T });
    expect(group.context.deadline).to.equal(T);

    group.send(observed(T, aMember({ running: 4, idle: 4 })));
    expect(group.context.deadline).to.equal(T + EVALUATION_MS);
  });

  it('evaluates rarely while only time passes, and as usual after a change', () => {
    const group = new AnAutoscalingGroup().send(
      { type: 'LEAD', now: T },
      observed(T, aMember({ running: 4, idle: 1 })),
    );
    expect(group.context.deadline).to.equal(T + REST_MS);

    expect(
      group.send({ type: 'STIR', now: T + 1_000 }).context.deadline,
      'not sooner than without a rest',
    ).to.equal(T + EVALUATION_MS);
    group.send(observed(T + EVALUATION_MS, aMember({ running: 4, idle: 1 })));
    expect(group.send({ type: 'STIR', now: T + 30_000 }).context.deadline).to.equal(T + 30_000);
  });

  it('evaluates as soon as a threshold or cooldown ends', () => {
    const group = new AnAutoscalingGroup(
      theWords({ group: aGroup({ up: { idleThresholdSeconds: 3 } }) }),
    ).send({ type: 'LEAD', now: T }, observed(T, aMember({ running: 4 })));

    expect(group.context.deadline).to.equal(T + 3_000);
  });

  it('saves a decision before it applies the decision', () => {
    const group = deciding();

    expect(group.state).to.equal('enabled.saving');
    expect(group.asked.map(({ type }) => type)).to.deep.equal(['save']);
    group.send({ type: 'SAVED', id: T, now: T + 10 });
    expect(group.state).to.equal('enabled.scaling.up');
    expect(group.asked.at(-1)).to.deep.equal({
      type: 'apply',
      id: T,
      cause: 'demand',
      change: { member: 'a', from: 4, to: 6 },
    });
  });

  it('sizes members with any name', () => {
    const name = 'constructor'; // every object has one
    const group = new AnAutoscalingGroup(
      theWords({ group: wanting, rules: [aRule({ name })] }),
    ).send({ type: 'LEAD', now: T }, observed(T, aMember({ name, running: 4 })));
    expect(group.state).to.equal('enabled.saving');

    group.send({ type: 'SAVED', id: T, now: T });
    expect(group.state).to.equal('enabled.scaling.up');
    expect(group.asked.at(-1)).to.deep.equal({
      type: 'apply',
      id: T,
      cause: 'demand',
      change: { member: name, from: 4, to: 6 },
    });
    group.send({
      type: 'CHANGED',
      id: T,
      member: name,
      outcome: { kind: 'refused', reason: 'quota' },
      now: T,
    });
    expect(group.state).to.equal('enabled.resting.saturated');
  });

  it('drops a decision whose save conflicts, and evaluates again', () => {
    const group = deciding().send({ type: 'SAVE_LOST', id: T, now: T + 10 });

    expect(group.state).to.equal('enabled.resting.idle');
    expect(group.context.memory.pending).to.equal(undefined);
    expect(group.context.memory.grewAt, 'it has not grown').to.equal(0);
    expect(group.context.deadline).to.equal(T + 10 + WAKE_MS);
  });

  it('repeats an unanswered save under the same id', () => {
    const group = deciding().send({ type: 'DEADLINE', now: T + ANSWER_MS });

    expect(group.asked.map((intent) => 'id' in intent && [intent.type, intent.id])).to.deep.equal([
      ['save', T],
      ['save', T],
    ]);
  });

  it('continues if the record shows its save', () => {
    const group = deciding();
    const { memory } = group.context;

    expect(
      group.send({ type: 'RECORD', ...theWords({ group: wanting, memory }), now: T + 10 }).state,
    ).to.equal('enabled.scaling.up');
  });

  it("uses the record's text of the decision after its save", () => {
    const group = deciding();
    const { memory } = group.context;
    group.send({
      type: 'RECORD',
      ...theWords({ group: { ...wanting, maxReplicas: 5 }, memory }),
      now: T + 10,
    });

    expect(group.context.group.maxReplicas).to.equal(5);
  });

  it('reports the outcome of a decision once every change is answered', () => {
    const group = deciding().send({ type: 'SAVED', id: T, now: T });
    group.taken();
    group.send({ type: 'CHANGED', id: T, member: 'a', outcome: { kind: 'done' }, now: T + 20 });

    expect(group.state).to.equal('enabled.resting.coolingDown');
    expect(group.asked).to.deep.equal([
      { type: 'tell', decision: group.context.saved.pending, outcomes: { a: { kind: 'done' } } },
    ]);
    expect(group.context.memory.pending).to.equal(undefined);
  });

  it('repeats only unanswered changes', () => {
    const two = theWords({
      group: wanting,
      rules: [aRule({ maxReplicas: 5, scaleUpPriority: 1 }), aRule({ name: 'b' })],
    });
    const group = new AnAutoscalingGroup(two).send(
      { type: 'LEAD', now: T },
      observed(T, aMember({ running: 4 }), aMember({ name: 'b', running: 1 })),
    );
    group.send(
      { type: 'SAVED', id: T, now: T },
      { type: 'CHANGED', id: T, member: 'a', outcome: { kind: 'done' }, now: T },
    );
    group.taken();
    group.send({ type: 'DEADLINE', now: T + ANSWER_MS });

    expect(group.asked).to.deep.equal([
      { type: 'apply', id: T, cause: 'demand', change: { member: 'b', from: 1, to: 2 } },
    ]);
  });

  it('stops growing a member that refuses, and evaluates the others at once', () => {
    const group = deciding().send(
      { type: 'SAVED', id: T, now: T },
      {
        type: 'CHANGED',
        id: T,
        member: 'a',
        outcome: { kind: 'refused', reason: 'quota' },
        now: T + 20,
      },
    );

    expect(group.state).to.equal('enabled.resting.saturated');
    expect(group.context.memory.saturated).to.deep.equal({
      a: { until: T + 20 + 120_000, reason: 'quota' },
    });
    expect(group.context.deadline).to.equal(T + 20);
  });

  it('evaluates when woken, at most four times a second', () => {
    const group = new AnAutoscalingGroup().send(
      { type: 'LEAD', now: T },
      observed(T, aMember({ running: 4, idle: 4 })),
    );

    expect(group.send({ type: 'WAKE', now: T + 10 }).context.deadline).to.equal(T + WAKE_MS);
    group.send(observed(T + WAKE_MS, aMember({ running: 4, idle: 4 })));
    expect(group.send({ type: 'WAKE', now: T + 4_000 }).context.deadline).to.equal(T + 4_000);
  });

  it('evaluates right after a decision if woken during it', () => {
    const group = deciding().send(
      { type: 'WAKE', now: T + 5 },
      { type: 'SAVED', id: T, now: T + 10 },
      { type: 'CHANGED', id: T, member: 'a', outcome: { kind: 'done' }, now: T + 20 },
    );

    expect(group.context.deadline).to.equal(T + 20);
  });

  it('finishes a decision that its predecessor saved', () => {
    const memory = aMemory({ last: T, pending: aDecision() });
    const group = new AnAutoscalingGroup(theWords({ memory })).send({
      type: 'LEAD',
      now: T + 4_000,
    });

    expect(group.asked).to.deep.equal([
      { type: 'apply', id: T, cause: 'demand', change: { member: 'a', from: 4, to: 6 } },
    ]);
    expect(group.state).to.equal('enabled.scaling.up');
  });

  it('drops an outdated decision of its predecessor', () => {
    const memory = aMemory({ last: T, pending: aDecision() });
    const group = new AnAutoscalingGroup(theWords({ memory })).send({
      type: 'LEAD',
      now: T + STALE_MS + 1,
    });

    expect(group.state).to.equal('enabled.resting.idle');
    expect(group.asked).to.deep.equal([]);
  });

  it('adopts a decision that another leader made in between', () => {
    const group = deciding();
    const memory = aMemory({
      last: T + 5,
      pending: aDecision({ id: T + 5, changes: [{ member: 'a', from: 4, to: 3 }] }),
    });
    group.taken();
    group.send(
      { type: 'RECORD', ...theWords({ group: wanting, memory }), now: T + 10 },
      { type: 'SAVE_LOST', id: T, now: T + 11 },
    );

    expect(group.state).to.equal('enabled.scaling.down');
    expect(group.asked).to.deep.equal([
      { type: 'apply', id: T + 5, cause: 'demand', change: { member: 'a', from: 4, to: 3 } },
    ]);
  });

  it('stops when its owner disables it, even during a decision', () => {
    const group = deciding().send({ type: 'SAVED', id: T, now: T });
    const { memory } = group.context;
    group.taken();
    group.send({
      type: 'RECORD',
      ...theWords({ group: { ...wanting, enabled: false }, memory }),
      now: T + 10,
    });

    expect(group.state).to.equal('disabled');
    expect(group.asked.map(({ type }) => type)).to.deep.equal(['remember']);
    expect(group.context.deadline).to.equal(undefined);
    group.send(
      { type: 'CHANGED', id: T, member: 'a', outcome: { kind: 'done' }, now: T + 20 },
      observed(T + 20, aMember({ running: 4 })),
    );
    expect(group.asked).to.have.length(1);
  });

  it('evaluates when its owner enables it', () => {
    const group = new AnAutoscalingGroup(theWords({ group: { ...wanting, enabled: false } })).send({
      type: 'LEAD',
      now: T,
    });
    expect(group.state).to.equal('disabled');

    group.send({ type: 'RECORD', ...theWords({ group: wanting }), now: T + 10 });
    expect(group.state).to.equal('enabled.resting.idle');
    expect(group.context.deadline).to.equal(T + 10);
  });

  it('evaluates when its settings change, and not when an equal record arrives', () => {
    const group = new AnAutoscalingGroup().send(
      { type: 'LEAD', now: T },
      observed(T, aMember({ running: 4, idle: 4 })),
    );

    group.send({ type: 'RECORD', ...theWords(), now: T + 1_000 });
    expect(group.context.deadline).to.equal(T + EVALUATION_MS);
    group.send({
      type: 'RECORD',
      ...theWords({ group: aGroup({ maxReplicas: 3 }) }),
      now: T + 1_000,
    });
    expect(group.context.deadline).to.equal(T + 1_000);
  });

  it('saves nothing while nothing changes, even during a countdown', () => {
    const group = new AnAutoscalingGroup().send({ type: 'LEAD', now: T });
    for (let now = T; now <= T + 600_000; now += EVALUATION_MS)
      group.send(observed(now, aMember({ running: 1, idle: 9 })));

    expect(group.asked).to.deep.equal([]);
  });

  it('hands its windows to its successor before a shrink', () => {
    const group = new AnAutoscalingGroup().send({ type: 'LEAD', now: T });
    for (let now = T; now <= T + 895_000; now += EVALUATION_MS)
      group.send(observed(now, aMember({ running: 1, idle: 9 })));
    const [handover] = group.send({ type: 'FOLLOW' }).taken();
    if (handover?.type !== 'remember') throw new Error('nothing was handed over');

    const successor = new AnAutoscalingGroup(theWords({ memory: handover.memory })).send({
      type: 'LEAD',
      now: T + 896_000,
    });
    successor.send(observed(T + 900_000, aMember({ running: 1, idle: 9 })));
    expect(successor.asked.map(({ type }) => type)).to.deep.equal(['save']);

    const early = new AnAutoscalingGroup(theWords({ memory: handover.memory })).send(
      { type: 'LEAD', now: T + 896_000 },
      observed(T + 897_000, aMember({ running: 1, idle: 9 })),
    );
    expect(early.asked).to.have.length(1);
    expect(early.asked[0]).to.have.property('memory').that.does.not.have.property('handedOver');
  });

  it('starts new windows after a leader that handed none over', () => {
    const group = new AnAutoscalingGroup().send({ type: 'LEAD', now: T });
    for (let now = T; now <= T + 895_000; now += EVALUATION_MS)
      group.send(observed(now, aMember({ running: 1, idle: 9 })));
    const { memory } = group.context;

    const successor = new AnAutoscalingGroup(theWords({ memory })).send(
      { type: 'LEAD', now: T + 896_000 },
      observed(T + 900_000, aMember({ running: 1, idle: 9 })),
    );
    expect(successor.asked).to.deep.equal([]);
  });

  it('saves at once that a member is saturated', () => {
    const group = new AnAutoscalingGroup(theWords({ rules: [aRule({ minReplicas: 3 })] })).send({
      type: 'LEAD',
      now: T,
    });
    group.send(
      observed(
        T,
        aMember({ idle: 1, desired: 3, trouble: { reason: 'unschedulable', count: 2, since: T } }),
      ),
    );

    expect(group.asked.map(({ type }) => type)).to.deep.equal(['remember']);
    expect(group.asked[0]).to.have.nested.property('memory.saturated.a.reason', 'unschedulable');
  });

  it('saves and reports its limit once, across a change of leader', () => {
    const words = theWords({ group: { ...wanting, maxReplicas: 4 } });
    const group = new AnAutoscalingGroup(words).send(
      { type: 'LEAD', now: T },
      observed(T, aMember({ running: 4 })),
    );
    expect(group.taken().map(({ type }) => type)).to.deep.equal(['save']);

    group.send({ type: 'SAVED', id: T, now: T });
    const [telling, ...others] = group.taken();
    expect(telling).to.have.property('type', 'tell');
    expect(telling).to.have.nested.property('decision.limitedBy[0]', "the group's maximum is 4");
    expect(others).to.deep.equal([]);
    const { saved } = group.context;
    const { pending: _done, ...memory } = saved;
    group.send(observed(T + 5_000, aMember({ running: 4 })));
    expect(group.asked, 'the same at the next look').to.deep.equal([]);

    const successor = new AnAutoscalingGroup({ ...words, memory }).send(
      { type: 'LEAD', now: T + 3_600_000 },
      observed(T + 3_600_000, aMember({ running: 4 })),
    );
    expect(successor.asked, 'the same under its successor').to.deep.equal([]);
  });

  it('saves that a limit may be reported again', () => {
    const group = new AnAutoscalingGroup(
      theWords({ memory: aMemory({ seenAt: T, limited: { "the group's maximum is 4": T } }) }),
    ).send(
      { type: 'LEAD', now: T },
      observed(T, aMember({ running: 3, idle: 1 })),
      observed(T + 300_000, aMember({ running: 3, idle: 1 })),
    );

    expect(group.asked.map(({ type }) => type)).to.deep.equal(['remember']);
    expect(group.asked[0]).to.have.nested.property('memory.limited').that.deep.equals({});
  });

  it('forgets a decision that the owner overrides before its save', () => {
    const group = deciding();
    const { saved } = group.context;
    group.taken();
    group.send({
      type: 'RECORD',
      ...theWords({ group: { ...wanting, enabled: false }, memory: saved }),
      now: T + 10,
    });

    expect(group.context.memory.last).to.equal(0);
    expect(group.asked).to.deep.equal([]);
  });

  it("does not mistake another leader's decision with the same id for its own", () => {
    const group = deciding();
    const memory = aMemory({
      last: T,
      pending: aDecision({ changes: [{ member: 'a', from: 4, to: 9 }] }),
    });
    group.taken();
    group.send({ type: 'RECORD', ...theWords({ group: wanting, memory }), now: T + 10 });

    expect(group.asked).to.deep.equal([
      { type: 'apply', id: T, cause: 'demand', change: { member: 'a', from: 4, to: 9 } },
    ]);
  });

  it('forgets unsaved state when its lease ends', () => {
    const group = deciding().send({ type: 'FOLLOW' });

    expect(group.state).to.equal('following');
    expect(group.context.memory.pending).to.equal(undefined);
    expect(group.context.deadline).to.equal(undefined);
  });
});
