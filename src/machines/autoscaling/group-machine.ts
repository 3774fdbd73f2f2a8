import { assign, enqueueActions, setup } from 'xstate';
import { asksOf } from './asks.ts';
import { evaluateGroup } from './evaluation.ts';
import type { GroupContext, GroupEvent, GroupIntent, GroupSpec } from './group-events.ts';
import {
  deciding,
  isOutdated,
  samePending,
  saturating,
  saturationUntil,
  takenOver,
  type GroupMemory,
} from './memory.ts';
import { getOwn } from '../../lib/plain-data.ts';

export const EVALUATION_MS = 5_000;

/** Shorter than the gap after which windows restart. */
export const REST_MS = 60_000;

export const WAKE_MS = 250;

export const ANSWER_MS = 5_000;

/** An older unfinished decision is dropped, since its reason has passed. */
export const STALE_MS = 60_000;

/**
 * One autoscaling group. Saves a decision in the env before it changes anything, so that a
 * successor can finish it. Each pool records the last decision in the same conditional write, so
 * none is applied twice. Decides only while it leads. The owner's change wins.
 */
export const autoscalingGroupMachine = setup({
  types: {
    context: {} as GroupContext,
    events: {} as GroupEvent,
    input: {} as GroupSpec,
    emitted: {} as GroupIntent,
  },
  guards: {
    enabled: ({ context }) => context.group.enabled,
    disabled: ({ context }) => !context.group.enabled,
    decided: ({ context: { memory, saved } }) =>
      memory.pending !== undefined && memory.pending.id > saved.last,
    unfinished: ({ context: { memory, saved } }) =>
      memory.pending !== undefined && memory.pending.id <= saved.last,
    shrinking: ({ context }) =>
      !(context.memory.pending?.changes.some(({ from, to }) => to > from) ?? true),
    answered: ({ context }) =>
      context.memory.pending?.changes.every(
        ({ member }) => getOwn(context.outcomes, member) !== undefined,
      ) ?? true,
    itsAnswer: ({ context, event }) => 'id' in event && event.id === context.memory.pending?.id,
    landed: ({ context, event }) =>
      event.type === 'RECORD' && samePending(event.memory, context.memory),
    overtaken: ({ context, event }) =>
      event.type === 'RECORD' && event.memory.last > context.saved.last,
    reworded: ({ context: { group, rules }, event }) =>
      event.type === 'RECORD' &&
      JSON.stringify([group, rules]) !== JSON.stringify([event.group, event.rules]),
    saturated: ({ context }) => isSaturated(context),
    unsaturated: ({ context }) => !isSaturated(context),
    cooling: ({ context }) => isCooling(context),
    cooled: ({ context }) => !isCooling(context),
    due: ({ context, event }) =>
      event.type === 'DEADLINE' && context.deadline !== undefined && event.now >= context.deadline,
  },
  actions: {
    lead: assign(({ context, event }) =>
      event.type === 'LEAD'
        ? {
            leading: true,
            memory: takenOver(current(context.saved, event.now), event.now),
            outcomes: {},
            woken: false,
          }
        : {},
    ),
    follow: enqueueActions(({ context: { leading, memory, saved, outlook }, enqueue }) => {
      if (leading && outlook?.countsDown === true && memory.pending === undefined)
        enqueue.emit({
          type: 'remember',
          last: saved.last,
          memory: { ...memory, handedOver: true },
        });
      enqueue.assign({
        leading: false,
        memory: saved,
        outcomes: {},
        deadline: undefined,
        outlook: undefined,
      });
    }),
    keepRecord: assign(({ context, event }) => {
      if (event.type !== 'RECORD') return {};
      const { group, rules, memory, now } = event;
      const ahead = context.leading && memory.last <= context.saved.last;
      return {
        group,
        rules,
        ...(ahead ? {} : { saved: memory, memory: current(memory, now), outcomes: {} }),
      };
    }),
    keepSaved: assign(({ context, event }) => ({
      saved: context.memory,
      outcomes: {},
      ...(event.type === 'RECORD' ? { group: event.group, rules: event.rules } : {}),
    })),
    evaluate: enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'OBSERVED') return;
      const { now, members } = event;
      const { decision, memory, outlook } = evaluateGroup({ ...context, members, now });
      enqueue.assign({
        outlook,
        woken: false,
        deadline: Math.min(
          now + (outlook.atRest ? REST_MS : EVALUATION_MS),
          outlook.retryAt ?? Number.POSITIVE_INFINITY,
        ),
      });
      if (decision)
        return enqueue.assign({
          memory: deciding(memory, decision),
          undecided: memory,
          decidedBy: { group: context.group, rules: context.rules },
          asks: asksOf(members, decision),
        });
      const due = isOutdated(context.saved, memory);
      enqueue.assign({ memory, ...(due ? { saved: memory } : {}) });
      if (due) enqueue.emit({ type: 'remember', last: memory.last, memory });
    }),
    save: enqueueActions(({ context: { memory, saved, decidedBy: by, asks }, event, enqueue }) => {
      if (!memory.pending || !('now' in event)) return;
      enqueue.assign({ deadline: event.now + ANSWER_MS });
      enqueue.emit({ type: 'save', id: memory.pending.id, last: saved.last, memory, by, asks });
    }),
    dropDecision: assign(({ context, event }) =>
      'now' in event ? { memory: context.undecided, deadline: event.now + WAKE_MS } : {},
    ),
    apply: enqueueActions(
      ({
        context: {
          memory: { pending },
          outcomes,
        },
        event,
        enqueue,
      }) => {
        if (!pending || !('now' in event)) return;
        enqueue.assign({ deadline: event.now + ANSWER_MS });
        for (const change of pending.changes)
          if (getOwn(outcomes, change.member) === undefined)
            enqueue.emit({ type: 'apply', id: pending.id, cause: pending.cause, change });
      },
    ),
    keepOutcome: assign(({ context, event }) => {
      if (event.type !== 'CHANGED') return {};
      const { member, outcome, now } = event;
      const outcomes = { ...context.outcomes, [member]: outcome };
      if (outcome.kind !== 'refused') return { outcomes };
      return {
        outcomes,
        woken: true,
        memory: saturating(context.memory, member, {
          until: saturationUntil(context.group, now),
          reason: outcome.reason,
        }),
      };
    }),
    finish: enqueueActions(({ context, event, enqueue }) => {
      const { pending, ...memory } = context.memory;
      if (!pending || !('now' in event)) return;
      enqueue.emit({ type: 'tell', decision: pending, outcomes: context.outcomes });
      enqueue.assign({
        memory,
        outcomes: {},
        deadline: context.woken ? event.now : Math.max(event.now, memory.seenAt + EVALUATION_MS),
      });
    }),
    // An unfinished decision does not wait: a disabled group stays as it is.
    abandon: enqueueActions(({ context, enqueue }) => {
      const { pending, ...memory } =
        (context.memory.pending?.id ?? 0) > context.saved.last ? context.undecided : context.memory;
      enqueue.assign({
        memory,
        outcomes: {},
        deadline: undefined,
        outlook: undefined,
        ...(pending ? { saved: memory } : {}),
      });
      if (pending) enqueue.emit({ type: 'remember', last: context.saved.last, memory });
    }),
    wake: assign(({ context: { deadline, memory }, event }) =>
      'now' in event
        ? {
            woken: true,
            deadline: Math.min(deadline ?? event.now, Math.max(event.now, memory.seenAt + WAKE_MS)),
          }
        : {},
    ),
    stir: assign(({ context: { deadline, memory }, event }) =>
      'now' in event
        ? {
            deadline: Math.min(
              deadline ?? event.now,
              Math.max(event.now, memory.seenAt + EVALUATION_MS),
            ),
          }
        : {},
    ),
    noteWake: assign({ woken: true }),
    lookNow: assign(({ event }) => ('now' in event ? { deadline: event.now } : {})),
    awaitNothing: assign({ deadline: undefined }),
  },
}).createMachine({
  id: 'autoscaling-group',
  context: ({ input }) => ({
    ...input,
    saved: input.memory,
    undecided: input.memory,
    decidedBy: input,
    asks: {},
    leading: false,
    outcomes: {},
    outlook: undefined,
    woken: false,
    deadline: undefined,
  }),
  initial: 'following',
  on: {
    FOLLOW: { target: '.following', actions: 'follow' },
    RECORD: { actions: 'keepRecord' },
  },
  states: {
    following: {
      entry: 'awaitNothing',
      on: { LEAD: { target: 'enabled', actions: ['lead', 'lookNow'] } },
    },
    disabled: {
      entry: 'abandon',
      always: { guard: 'enabled', target: 'enabled', actions: 'lookNow' },
    },
    enabled: {
      initial: 'resting',
      always: { guard: 'disabled', target: 'disabled' },
      on: {
        RECORD: [
          { guard: 'overtaken', target: '.resting', actions: ['keepRecord', 'lookNow'] },
          { actions: 'keepRecord' },
        ],
      },
      states: {
        resting: {
          initial: 'idle',
          always: [
            { guard: 'decided', target: 'saving' },
            { guard: 'unfinished', target: 'scaling' },
          ],
          on: {
            OBSERVED: { actions: 'evaluate' },
            WAKE: { actions: 'wake' },
            STIR: { actions: 'stir' },
            RECORD: [
              {
                guard: 'overtaken',
                target: 'resting',
                reenter: true,
                actions: ['keepRecord', 'lookNow'],
              },
              { guard: 'reworded', actions: ['keepRecord', 'wake'] },
              { actions: 'keepRecord' },
            ],
          },
          states: {
            idle: {
              always: [
                { guard: 'saturated', target: 'saturated' },
                { guard: 'cooling', target: 'coolingDown' },
              ],
            },
            coolingDown: {
              always: [
                { guard: 'saturated', target: 'saturated' },
                { guard: 'cooled', target: 'idle' },
              ],
            },
            saturated: { always: { guard: 'unsaturated', target: 'idle' } },
          },
        },
        saving: {
          entry: 'save',
          on: {
            SAVED: { guard: 'itsAnswer', target: 'scaling', actions: 'keepSaved' },
            SAVE_LOST: { guard: 'itsAnswer', target: 'resting', actions: 'dropDecision' },
            RECORD: { guard: 'landed', target: 'scaling', actions: 'keepSaved' },
            DEADLINE: { guard: 'due', actions: 'save' },
            WAKE: { actions: 'noteWake' },
          },
        },
        scaling: {
          entry: 'apply',
          initial: 'up',
          always: { guard: 'answered', target: 'resting', actions: 'finish' },
          on: {
            CHANGED: { guard: 'itsAnswer', actions: 'keepOutcome' },
            DEADLINE: { guard: 'due', actions: 'apply' },
            WAKE: { actions: 'noteWake' },
          },
          states: { up: { always: { guard: 'shrinking', target: 'down' } }, down: {} },
        },
      },
    },
  },
});

/** Keeps an unfinished decision only while it is fresh. */
const current = (memory: GroupMemory, now: number): GroupMemory => {
  const { pending, ...others } = memory;
  return pending && now - pending.at > STALE_MS ? others : memory;
};

const isSaturated = ({ rules, memory }: GroupContext): boolean =>
  rules.length > 0 && rules.every(({ name }) => getOwn(memory.saturated, name) !== undefined);

const isCooling = ({ memory, group }: GroupContext): boolean =>
  memory.coolingFrom > 0 &&
  memory.seenAt - memory.coolingFrom < group.scaleUpPolicy.cooldownSeconds * 1_000;
