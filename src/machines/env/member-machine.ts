import { assign, enqueueActions, setup } from 'xstate';
import { saysTheSame } from '../../model/envs/env-rendering.ts';
import { decisionOf, isGone, isLeaving, isRemote } from './member-decisions.ts';
import type { MemberContext, MemberEvent, MemberInput, MemberIntent } from './member-events.ts';

/**
 * One member of an env: pending (no pool yet), active, saturated (can't grow for now), draining (to
 * go, its pool first), unreachable (of a cluster that is away), error (what it needs failed, and is
 * tried again), gone. The env is the truth about it: while it leads it has its pool made, kept as
 * the env asks, and ended, with one intent at a time.
 */
export const envMemberMachine = setup({
  types: {
    context: {} as MemberContext,
    events: {} as MemberEvent,
    input: {} as MemberInput,
    emitted: {} as MemberIntent,
  },
  guards: {
    gone: ({ context }) => isGone(context.fact),
    leaving: ({ context }) => isLeaving(context.fact),
    remote: ({ context }) => isRemote(context),
    troubled: ({ context }) => context.trouble !== undefined,
    poolless: ({ context }) => context.fact.pool === undefined,
    saturated: ({ context }) => context.fact.saturatedUntil > context.now,
    due: ({ context, event }) =>
      event.type === 'DEADLINE' && context.deadline !== undefined && event.now >= context.deadline,
  },
  actions: {
    lead: assign({ leading: true }),
    // Whoever leads next begins with what there is.
    follow: assign({ leading: false, asked: undefined, deadline: undefined }),
    // Another word of the owner's may be carried out where the last one could not.
    keepFact: assign(({ context, event }) =>
      event.type !== 'FACT'
        ? {}
        : {
            fact: event.fact,
            ...(asksOtherwise(context, event.fact) ? { trouble: undefined, done: undefined } : {}),
          },
    ),
    noteDone: assign(({ context, event }) =>
      event.type !== 'CARRIED_OUT'
        ? {}
        : {
            asked: undefined,
            trouble: undefined,
            done: context.asked === undefined ? undefined : { type: context.asked, at: event.now },
          },
    ),
    noteTrouble: assign(({ context, event }) =>
      event.type !== 'NOT_CARRIED_OUT'
        ? {}
        : {
            asked: undefined,
            trouble: {
              reason: event.reason,
              why: event.why,
              times: (context.trouble?.times ?? 0) + 1,
            },
            troubledAt: event.now,
          },
    ),
    decide: enqueueActions(({ context, event, enqueue }) => {
      if (!('now' in event)) return;
      const { intent, deadline } = decisionOf(context, event.now);
      enqueue.assign({ now: event.now, deadline, ...(intent ? { asked: intent.type } : {}) });
      if (intent) enqueue.emit(intent);
    }),
  },
}).createMachine({
  id: 'env-member',
  context: ({ input: { fact, localCluster, now } }) => ({
    fact,
    localCluster,
    now,
    leading: false,
    asked: undefined,
    done: undefined,
    trouble: undefined,
    troubledAt: 0,
    deadline: undefined,
  }),
  initial: 'classified',
  on: {
    LEAD: { target: '.classified', actions: ['lead', 'decide'] },
    FOLLOW: { actions: 'follow' },
    FACT: { target: '.classified', actions: ['keepFact', 'decide'] },
    CARRIED_OUT: { target: '.classified', actions: ['noteDone', 'decide'] },
    NOT_CARRIED_OUT: { target: '.classified', actions: ['noteTrouble', 'decide'] },
    DEADLINE: { guard: 'due', target: '.classified', actions: 'decide' },
  },
  states: {
    // What is known says which it is.
    classified: {
      always: [
        { guard: 'gone', target: 'gone' },
        { guard: 'leaving', target: 'draining' },
        { guard: 'remote', target: 'unreachable' },
        { guard: 'troubled', target: 'error' },
        { guard: 'poolless', target: 'pending' },
        { guard: 'saturated', target: 'saturated' },
        { target: 'active' },
      ],
    },
    pending: {},
    active: {},
    saturated: {},
    draining: {},
    unreachable: {},
    error: {},
    gone: { type: 'final' },
  },
});

const asksOtherwise = (
  { fact: { env, member, pool } }: MemberContext,
  next: MemberContext['fact'],
): boolean => next.pool?.uid !== pool?.uid || !saysTheSame({ env, member }, next);
