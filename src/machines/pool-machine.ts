import { assign, emit, enqueueActions, setup } from 'xstate';
import { CLOSED_BREAKER, NO_INSTANCES, type BreakerStatus, type PoolCounts, type PoolRecord } from '../model/pool.ts';
import { afterDeferral, afterFailure, planScale, presentOf, unclaimedOf, type PoolPolicy, type ScalePlan, type TokenBucket } from './pool-arithmetic.ts';

/** `counts`: the instances that are there already, for an actor that is rebuilt. */
export interface PoolInput { readonly record: PoolRecord; readonly policy: PoolPolicy; readonly now: number; readonly counts?: PoolCounts }

/** `from` and `to` are where an instance of the pool counted before and counts now; absent: nowhere. */
export type PoolEvent =
  | { readonly type: 'LEAD'; readonly now: number }
  | { readonly type: 'FOLLOW' }
  | { readonly type: 'RECORD'; readonly record: PoolRecord; readonly now: number }
  | { readonly type: 'INSTANCE_MOVED'; readonly from: keyof PoolCounts | undefined; readonly to: keyof PoolCounts | undefined; readonly ordered: boolean; readonly now: number }
  | { readonly type: 'INSTANCE_STARTED'; readonly now: number }
  | { readonly type: 'START_FAILED'; readonly reason: string; readonly now: number }
  /** There is no place for an instance now: none is launched for a while. */
  | { readonly type: 'START_DEFERRED'; readonly reason: string; readonly now: number }
  /** The supervisor couldn't order these launches after all. */
  | { readonly type: 'LAUNCHES_DROPPED'; readonly count: number; readonly now: number }
  | { readonly type: 'REMOVED' }
  | { readonly type: 'REMOVE_UNSETTLED'; readonly now: number }
  | { readonly type: 'DEADLINE'; readonly now: number };

export type PoolIntent =
  | { readonly type: 'launch'; readonly count: number }
  /** Retire unclaimed instances while `surplusOf` the pool is above zero: starting ones first, then the longest idle. */
  | { readonly type: 'trim' }
  | { readonly type: 'end-running' }
  | { readonly type: 'save-breaker'; readonly breaker: BreakerStatus }
  | { readonly type: 'remove' };

export interface PoolContext {
  readonly record: PoolRecord;
  readonly policy: PoolPolicy;
  readonly counts: PoolCounts;
  readonly ordered: number;
  readonly bucket: TokenBucket;
  readonly breaker: BreakerStatus;
  readonly leading: boolean;
  readonly filledOnce: boolean;
  readonly deadline: number | undefined;
}

const REMOVE_RETRY_MS = 1_000;

/**
 * One pool, in parallel regions: lifecycle (pending, active, deleting, removed), scale (settled, short, surplus) and
 * breaker (closed, open). It counts its instances as they move, and asks for launches and retirements so that what is
 * present comes to `replicas` and never above. Only while it leads does it decide; running instances are never retired,
 * and are ended only by a deletion with `force`.
 */
export const poolMachine = setup({
  types: {
    context: {} as PoolContext,
    events: {} as PoolEvent,
    input: {} as PoolInput,
    emitted: {} as PoolIntent,
  },
  guards: {
    filled: ({ context }) => context.filledOnce,
    deleting: ({ context }) => context.record.deleting !== false,
    empty: ({ context }) => context.leading && unclaimedOf(context.counts) + context.ordered === 0 &&
      (context.record.deleting !== 'force' || context.counts.running + context.counts.stopping === 0),
    short: ({ context }) => shortage(context) > 0,
    surplus: ({ context }) => shortage(context) < 0,
    exact: ({ context }) => shortage(context) === 0,
    tripped: ({ context }) => context.breaker.failures >= context.policy.breaker.failures,
    mended: ({ context }) => context.breaker.failures < context.policy.breaker.failures,
    following: ({ context }) => !context.leading,
    due: ({ context, event }) => event.type === 'DEADLINE' && context.deadline !== undefined && event.now >= context.deadline,
  },
  actions: {
    lead: assign({ leading: true }),
    // What was ordered and has not appeared is dropped with the lease.
    follow: assign({ leading: false, deadline: undefined, ordered: 0 }),
    // Deletion stays: a record that doesn't know of it is an older one.
    keepRecord: assign(({ context, event }) =>
      event.type === 'RECORD' && (context.record.deleting === false || event.record.deleting !== false)
        ? { record: event.record, ...(context.leading ? {} : { breaker: event.record.breaker }) } : {}),
    // All of one move in a single step: it happens several times in each instance's life.
    count: enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'INSTANCE_MOVED') return;
      const moved = { ...context, ...counted(context, event) };
      const plan = planOf(moved, event.now);
      enqueue.assign({ ...counted(context, event), filledOnce: moved.filledOnce || isFilled(moved), ...(plan ? changeBy(plan, moved) : {}) });
      for (const intent of [...intentsOf(plan), ...endingOf(moved)]) enqueue.emit(intent);
    }),
    dropOrdered: assign(({ context, event }) => event.type === 'LAUNCHES_DROPPED' ? { ordered: Math.max(0, context.ordered - event.count) } : {}),
    noteFilled: assign(({ context }) => ({ filledOnce: context.filledOnce || isFilled(context) })),
    noteStarted: enqueueActions(({ context, enqueue }) => {
      if (context.breaker.failures === 0 && context.breaker.pausedUntil === 0) return;
      const wasTripped = context.breaker.pausedUntil > 0;
      enqueue.assign({ breaker: CLOSED_BREAKER });
      if (wasTripped && context.leading) enqueue.emit({ type: 'save-breaker', breaker: CLOSED_BREAKER });
    }),
    noteFailure: enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'START_FAILED') return;
      const breaker = afterFailure(context.breaker, event.reason, event.now, context.policy.breaker);
      enqueue.assign({ breaker });
      if (context.leading && breaker.pausedUntil !== context.breaker.pausedUntil) enqueue.emit({ type: 'save-breaker', breaker });
    }),
    noteDeferral: assign(({ context, event }) => (event.type === 'START_DEFERRED' ? { breaker: afterDeferral(context.breaker, event.reason, event.now, context.policy.breaker) } : {})),
    plan: enqueueActions(({ context, event, enqueue }) => {
      const plan = 'now' in event ? planOf(context, event.now) : undefined;
      if (!plan) return;
      enqueue.assign(changeBy(plan, context));
      for (const intent of intentsOf(plan)) enqueue.emit(intent);
    }),
    endRunning: enqueueActions(({ context, enqueue }) => {
      for (const intent of endingOf(context)) enqueue.emit(intent);
    }),
    remove: emit({ type: 'remove' } as PoolIntent),
    awaitNothing: assign({ deadline: undefined }),
    awaitRemoval: assign(({ event }) => 'now' in event ? { deadline: event.now + REMOVE_RETRY_MS } : {}),
  },
}).createMachine({
  id: 'pool',
  type: 'parallel',
  context: ({ input }) => ({
    record: input.record, policy: input.policy, counts: input.counts ?? NO_INSTANCES, ordered: 0,
    bucket: { tokens: input.policy.refill.burst, at: input.now }, breaker: input.record.breaker,
    leading: false, filledOnce: false, deadline: undefined,
  }),
  on: {
    LEAD: { actions: ['lead', 'noteFilled', 'plan', 'endRunning'] },
    FOLLOW: { actions: 'follow' },
    RECORD: { actions: ['keepRecord', 'noteFilled', 'plan', 'endRunning'] },
    INSTANCE_MOVED: { actions: 'count' },
    INSTANCE_STARTED: { actions: ['noteStarted', 'plan'] },
    START_FAILED: { actions: ['noteFailure', 'plan'] },
    START_DEFERRED: { actions: ['noteDeferral', 'plan'] },
    LAUNCHES_DROPPED: { actions: ['dropOrdered', 'plan'] },
    DEADLINE: { guard: 'due', actions: 'plan' },
  },
  states: {
    lifecycle: {
      initial: 'pending',
      states: {
        pending: { always: [{ guard: 'deleting', target: 'deleting' }, { guard: 'filled', target: 'active' }], on: { REMOVED: { target: 'removed' } } },
        active: { always: { guard: 'deleting', target: 'deleting' }, on: { REMOVED: { target: 'removed' } } },
        deleting: {
          initial: 'draining',
          states: {
            draining: { entry: 'awaitNothing', always: { guard: 'empty', target: 'removing' } },
            removing: {
              entry: ['remove', 'awaitRemoval'],
              always: { guard: 'following', target: 'draining' },
              on: { REMOVE_UNSETTLED: { target: 'unremoved' }, DEADLINE: { guard: 'due', target: 'unremoved' } },
            },
            unremoved: {
              entry: 'awaitRemoval',
              always: { guard: 'following', target: 'draining' },
              on: { DEADLINE: { guard: 'due', target: 'draining' } },
            },
          },
          on: { REMOVED: { target: 'removed' } },
        },
        removed: { type: 'final' },
      },
    },
    scale: {
      initial: 'settled',
      states: {
        settled: { always: [{ guard: 'short', target: 'short' }, { guard: 'surplus', target: 'surplus' }] },
        short: { always: [{ guard: 'exact', target: 'settled' }, { guard: 'surplus', target: 'surplus' }] },
        surplus: { always: [{ guard: 'exact', target: 'settled' }, { guard: 'short', target: 'short' }] },
      },
    },
    breaker: {
      initial: 'closed',
      states: {
        closed: { always: { guard: 'tripped', target: 'open' } },
        open: { always: { guard: 'mended', target: 'closed' } },
      },
    },
  },
});

/** How many unclaimed instances are too many now. */
export const surplusOf = (context: PoolContext): number => Math.max(0, Math.min(-shortage(context), unclaimedOf(context.counts)));

const semanticZero = (context: PoolContext): number =>
  context.policy.replicaSemantics === 'total' ? context.counts.running : 0;

const shortage = (context: PoolContext): number =>
  (context.record.deleting === false ? context.record.replicas : semanticZero(context)) -
  presentOf(context.counts, context.ordered, context.policy.replicaSemantics);

/** What to do now; undefined while another replica leads. */
const planOf = (context: PoolContext, now: number): ScalePlan | undefined => {
  if (!context.leading) return undefined;
  const replicas = context.record.deleting === false ? context.record.replicas : semanticZero(context);
  return planScale({ replicas, counts: context.counts, ordered: context.ordered, bucket: context.bucket, breaker: context.breaker, now }, context.policy);
};

const changeBy = (plan: ScalePlan, { record, ordered, deadline }: PoolContext): Pick<PoolContext, 'ordered' | 'bucket' | 'deadline'> =>
  ({ bucket: plan.bucket, ordered: ordered + plan.launch, deadline: record.deleting === false ? plan.wakeAt : deadline });

const intentsOf = (plan: ScalePlan | undefined): readonly PoolIntent[] => [
  ...(plan && plan.launch > 0 ? [{ type: 'launch' as const, count: plan.launch }] : []),
  ...(plan && plan.retire > 0 ? [{ type: 'trim' as const }] : []),
];

const endingOf = ({ leading, record, counts }: PoolContext): readonly PoolIntent[] =>
  leading && record.deleting === 'force' && counts.running > 0 ? [{ type: 'end-running' }] : [];

const isFilled = ({ record, counts, ordered, policy }: PoolContext): boolean =>
  counts.starting + ordered === 0 && presentOf(counts, 0, policy.replicaSemantics) >= record.replicas;

const counted = (context: PoolContext, event: Extract<PoolEvent, { type: 'INSTANCE_MOVED' }>): Partial<PoolContext> => {
  const counts = { ...context.counts };
  if (event.from) counts[event.from] = Math.max(0, counts[event.from] - 1);
  if (event.to) counts[event.to] += 1;
  return { counts, ordered: event.ordered ? Math.max(0, context.ordered - 1) : context.ordered };
};
