import { assign, enqueueActions, setup } from 'xstate';
import { isOpen } from '../../model/approvals/approval.ts';
import type { ApprovalContext, ApprovalEvent, ApprovalInput, ApprovalIntent } from './events.ts';

const ASK_AGAIN_MS = 5_000;

/**
 * One approval. Its record is the truth and moves by conditional writes of requests. Nothing leads
 * back to pending; only the leader of its shard expires it.
 */
export const approvalMachine = setup({
  types: {
    context: {} as ApprovalContext,
    events: {} as ApprovalEvent,
    input: {} as ApprovalInput,
    emitted: {} as ApprovalIntent,
  },
  guards: {
    pending: ({ context }) => context.record.status === 'pending',
    approved: ({ context }) => context.record.status === 'approved',
    inUse: ({ context }) => isOpen(context.record) && context.record.status === 'consumed',
    due: ({ context, event }) =>
      event.type === 'DEADLINE' && context.deadline !== undefined && event.now >= context.deadline,
  },
  actions: {
    noteRecord: assign(({ context, event }) =>
      event.type === 'RECORD' ? { ...context, record: event.record, askedAt: undefined } : context,
    ),
    lead: assign({ leads: true }),
    follow: assign({ leads: false, askedAt: undefined }),
    arm: assign(({ context }) => ({ ...context, deadline: deadlineOf(context) })),
    askExpire: enqueueActions(({ event, enqueue }) => {
      if (event.type !== 'DEADLINE') return;
      enqueue.assign({ askedAt: event.now });
      enqueue.emit({ type: 'expire' });
    }),
    askSettle: enqueueActions(({ event, enqueue }) => {
      if (event.type !== 'DEADLINE') return;
      enqueue.assign({ askedAt: event.now });
      enqueue.emit({ type: 'settle' });
    }),
  },
}).createMachine({
  id: 'approval',
  context: ({ input }) => ({ ...input, leads: false, askedAt: undefined, deadline: undefined }),
  initial: 'known',
  on: {
    RECORD: { target: '.known', actions: 'noteRecord' },
    LEAD: { target: '.known', actions: 'lead' },
    FOLLOW: { target: '.known', actions: 'follow' },
  },
  states: {
    known: {
      always: [
        { guard: 'pending', target: 'pending' },
        { guard: 'approved', target: 'approved' },
        { guard: 'inUse', target: 'consuming' },
        { target: 'over' },
      ],
    },
    pending: {
      description: 'waits for approval',
      entry: 'arm',
      on: { DEADLINE: { guard: 'due', actions: ['askExpire', 'arm'] } },
    },
    approved: {
      description: 'granted and not used yet, or valid for a session',
      entry: 'arm',
      on: { DEADLINE: { guard: 'due', actions: ['askExpire', 'arm'] } },
    },
    consuming: {
      description: 'used, and its outcome is not known yet; a repeated request finds it out',
      entry: 'arm',
      on: { DEADLINE: { guard: 'due', actions: ['askSettle', 'arm'] } },
    },
    over: { type: 'final' },
  },
});

const deadlineOf = ({ record, grantMs, leads, askedAt }: ApprovalContext): number | undefined => {
  if (!leads) return undefined;
  if (askedAt !== undefined) return askedAt + ASK_AGAIN_MS;
  return record.use ? record.use.at + grantMs : record.expiresAt;
};
