import { assign, enqueueActions, setup } from 'xstate';
import { saysTheSame } from '../../model/envs/env-rendering.ts';
import { decisionOf, isGone } from './member-decisions.ts';
import type { MemberContext, MemberEvent, MemberInput, MemberIntent } from './member-events.ts';

/**
 * One member of an env. The env is the truth; the leader makes the member's pool follow it, with
 * one intent at a time. The state that owners see is derived: `memberStateOf`.
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
    lacking: ({ context }) => decisionOf(context, context.now).intent !== undefined,
    postponed: ({ context }) => decisionOf(context, context.now).postponed,
    due: ({ context, event }) =>
      event.type === 'DEADLINE' && context.deadline !== undefined && event.now >= context.deadline,
  },
  actions: {
    noteTime: assign(({ event }) => ('now' in event ? { now: event.now } : {})),
    // Another setting may succeed after a failure.
    keepFact: assign(({ context, event }) =>
      event.type !== 'FACT'
        ? {}
        : {
            fact: event.fact,
            now: event.now,
            ...(asksOtherwise(context, event.fact) ? { trouble: undefined, done: undefined } : {}),
          },
    ),
    ask: enqueueActions(({ context, enqueue }) => {
      const { intent } = decisionOf(context, context.now);
      if (!intent) return;
      enqueue.assign({ asked: intent.type });
      enqueue.emit(intent);
    }),
    noteDone: assign(({ context, event }) =>
      event.type !== 'CARRIED_OUT'
        ? {}
        : {
            now: event.now,
            asked: undefined,
            trouble: undefined,
            done: context.asked === undefined ? undefined : { type: context.asked, at: event.now },
          },
    ),
    noteTrouble: assign(({ context, event }) =>
      event.type !== 'NOT_CARRIED_OUT'
        ? {}
        : {
            now: event.now,
            asked: undefined,
            trouble: {
              reason: event.reason,
              why: event.why,
              times: (context.trouble?.times ?? 0) + 1,
            },
            troubledAt: event.now,
          },
    ),
    forgetAsked: assign({ asked: undefined }),
    lookAgain: assign(({ context }) => ({
      deadline: decisionOf(context, context.now).deadline,
    })),
    lookWhenGrowing: assign(({ context: { fact, now } }) => ({
      deadline: fact.saturatedUntil > now ? fact.saturatedUntil : undefined,
    })),
  },
}).createMachine({
  id: 'env-member',
  context: ({ input: { fact, localCluster, now } }) => ({
    fact,
    localCluster,
    now,
    asked: undefined,
    done: undefined,
    trouble: undefined,
    troubledAt: 0,
    deadline: undefined,
  }),
  initial: 'following',
  states: {
    following: {
      description: 'another replica decides for it; this replica follows',
      entry: 'lookWhenGrowing',
      always: { guard: 'gone', target: 'gone' },
      on: {
        LEAD: { target: 'leading', actions: 'noteTime' },
        FACT: { actions: ['keepFact', 'lookWhenGrowing'] },
        DEADLINE: { guard: 'due', actions: ['noteTime', 'lookWhenGrowing'] },
      },
    },
    leading: {
      initial: 'deciding',
      always: { guard: 'gone', target: 'gone' },
      on: { FOLLOW: { target: 'following', actions: 'forgetAsked' } },
      states: {
        deciding: {
          always: [
            { guard: 'lacking', target: 'asking' },
            { guard: 'postponed', target: 'pausing' },
            { target: 'settled' },
          ],
        },
        settled: {
          description: 'its pool matches its env, or this replica can do nothing for it',
          entry: 'lookAgain',
          on: {
            FACT: { target: 'deciding', actions: 'keepFact' },
            DEADLINE: { guard: 'due', target: 'deciding', actions: 'noteTime' },
          },
        },
        pausing: {
          description:
            'it waits before it requests the next change: it has just requested one, or a ' +
            'request failed',
          entry: 'lookAgain',
          on: {
            FACT: { target: 'deciding', actions: 'keepFact' },
            DEADLINE: { guard: 'due', target: 'deciding', actions: 'noteTime' },
          },
        },
        asking: {
          description: 'a change was requested, and its answer is awaited',
          entry: ['ask', 'lookWhenGrowing'],
          on: {
            CARRIED_OUT: { target: 'deciding', actions: 'noteDone' },
            NOT_CARRIED_OUT: { target: 'deciding', actions: 'noteTrouble' },
            FACT: { actions: ['keepFact', 'lookWhenGrowing'] },
            DEADLINE: { guard: 'due', actions: ['noteTime', 'lookWhenGrowing'] },
          },
        },
      },
    },
    gone: { type: 'final' },
  },
});

const asksOtherwise = (
  { fact: { env, member, pool, away } }: MemberContext,
  next: MemberContext['fact'],
): boolean =>
  next.pool?.uid !== pool?.uid ||
  next.away?.reachable !== away?.reachable ||
  !saysTheSame({ env, member }, next);
