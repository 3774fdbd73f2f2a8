import { assign, emit, enqueueActions, setup } from 'xstate';
import {
  CLOSED_BREAKER,
  NO_INSTANCES,
  type PoolCounts,
  type PoolRecord,
} from '../../model/pools/pool.ts';
import { runsTheSame } from '../../model/pools/update-revision.ts';
import { afterDeferral, afterFailure, inFlightAfterFailure, unclaimedOf } from './arithmetic.ts';
import { firstConditions, decisionOf, isTripped, provenIn } from './decisions.ts';
import type { PoolContext, PoolEvent, PoolInput, PoolIntent, Tallied } from './events.ts';
import { STEADY_MS } from '../sandbox/arithmetic.ts';

const REMOVE_RETRY_MS = 1_000;
const PROOF_MS = STEADY_MS + 1_000;

/**
 * One pool. Launches and retires so that instances never exceed `replicas`. Decides only while it
 * leads. Never retires running sandboxes; only a deletion with `force` ends them.
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
    empty: ({ context }) =>
      context.leading &&
      unclaimedOf(context.counts) + context.ordered === 0 &&
      (context.record.deleting !== 'force' ||
        context.counts.running + context.counts.stopping + context.counts.retiring === 0),
    following: ({ context }) => !context.leading,
    due: ({ context, event }) =>
      event.type === 'DEADLINE' && context.deadline !== undefined && event.now >= context.deadline,
  },
  actions: {
    lead: assign(({ context }) => ({
      leading: true,
      conditions: context.record.conditions ?? context.conditions,
    })),
    // Ordered launches are dropped with the lease.
    follow: assign({ leading: false, deadline: undefined, ordered: 0 }),
    // Deletion is final: a record without it is older.
    keepRecord: enqueueActions(({ context, event, enqueue }) => {
      if (
        event.type !== 'RECORD' ||
        (context.record.deleting !== false && event.record.deleting === false)
      )
        return;
      const { record, updated, now } = event;
      const renewed = record.updateRevision !== context.record.updateRevision;
      enqueue.assign({
        record,
        updated,
        ...(renewed ? proofOf(context, record, { updated, now }) : {}),
        ...(renewed && { inFlight: context.policy.refill.inFlight }),
        ...(!context.leading
          ? followedBreaker(context, record, now)
          : renewed
            ? { breaker: CLOSED_BREAKER }
            : {}),
      });
      if (context.leading && renewed && record.breaker.pausedUntil > 0)
        enqueue.emit({
          type: 'save-breaker',
          breaker: CLOSED_BREAKER,
          revision: record.updateRevision,
        });
    }),
    // One step for a whole move, which happens several times in each instance's life.
    count: enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'INSTANCE_MOVED') return;
      const { counted, now } = event;
      const proof = provenIn(context, now);
      const awaited =
        counted.updated.idle > context.updated.idle && (isTripped(context) || !proof.proven);
      const known = {
        ...counted,
        ...proof,
        ordered: event.ordered ? Math.max(0, context.ordered - 1) : context.ordered,
        provenAt: awaited ? now + PROOF_MS : context.provenAt,
        inFlight: becameReady(context, counted)
          ? Math.min(context.inFlight + 1, context.policy.refill.inFlight)
          : context.inFlight,
      };
      const moved = { ...context, ...known };
      const { change, intents } = decisionOf(moved, now);
      enqueue.assign({ ...known, ...change });
      for (const intent of [...intents, ...endingOf(moved)]) enqueue.emit(intent);
    }),
    dropOrdered: assign(({ context, event }) =>
      event.type === 'LAUNCHES_DROPPED'
        ? { ordered: Math.max(0, context.ordered - event.count) }
        : {},
    ),
    noteStarted: enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'INSTANCE_STARTED' || event.revision !== context.record.updateRevision)
        return;
      enqueue.assign({ proven: true, lived: context.record.definition });
      if (context.breaker.failures === 0 && context.breaker.pausedUntil === 0) return;
      const wasTripped = context.breaker.pausedUntil > 0;
      enqueue.assign({ breaker: CLOSED_BREAKER });
      if (wasTripped && context.leading)
        enqueue.emit({ type: 'save-breaker', breaker: CLOSED_BREAKER, revision: event.revision });
    }),
    noteFailure: enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'START_FAILED' || event.revision !== context.record.updateRevision) return;
      const breaker = afterFailure(context.breaker, event, context.policy.breaker);
      const { inFlight, counts, ordered } = context;
      enqueue.assign({
        breaker,
        failedAt: event.now,
        inFlight:
          event.isRefused || !context.leading
            ? inFlight
            : inFlightAfterFailure(inFlight, counts.starting + ordered),
      });
      if (context.leading && breaker.pausedUntil !== context.breaker.pausedUntil)
        enqueue.emit({ type: 'save-breaker', breaker, revision: event.revision });
    }),
    noteDeferral: enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'START_DEFERRED') return;
      const breaker = afterDeferral(context.breaker, event, context.policy.breaker);
      enqueue.assign({ breaker, failedAt: event.now });
      if (context.leading && context.breaker.pausedUntil <= event.now)
        enqueue.emit({ type: 'save-breaker', breaker, revision: context.record.updateRevision });
    }),
    decide: enqueueActions(({ context, event, enqueue }) => {
      if (!('now' in event)) return;
      const place = event.type === 'PLACE' ? 'a place' : 'no place';
      const { change, intents } = decisionOf(context, event.now, place);
      enqueue.assign(change);
      for (const intent of intents) enqueue.emit(intent);
    }),
    endRunning: enqueueActions(({ context, enqueue }) => {
      for (const intent of endingOf(context)) enqueue.emit(intent);
    }),
    remove: emit({ type: 'remove' } as PoolIntent),
    awaitNothing: assign({ deadline: undefined }),
    awaitRemoval: assign(({ event }) =>
      'now' in event ? { deadline: event.now + REMOVE_RETRY_MS } : {},
    ),
  },
}).createMachine({
  id: 'pool',
  initial: 'pending',
  context: ({ input: { record, policy, now, counted } }) => ({
    record,
    policy,
    counts: counted?.counts ?? NO_INSTANCES,
    updated: counted?.updated ?? NO_INSTANCES,
    ordered: 0,
    bucket: { tokens: policy.refill.burst, at: now },
    inFlight: policy.refill.inFlight,
    breaker: record.breaker,
    failedAt: record.breaker.pausedUntil > 0 ? now : 0,
    leading: false,
    filledOnce: false,
    proven: false,
    provenAt: counted && counted.updated.idle > 0 ? now + PROOF_MS : 0,
    lived: undefined,
    rolling:
      record.deleting === false &&
      firstConditions(record).some(
        ({ type, status }) => type === 'Progressing' && status === 'True',
      ),
    conditions: firstConditions(record),
    savedAt: 0,
    deadline: undefined,
  }),
  on: {
    LEAD: { actions: ['lead', 'decide', 'endRunning'] },
    FOLLOW: { actions: 'follow' },
    RECORD: { actions: ['keepRecord', 'decide', 'endRunning'] },
    INSTANCE_MOVED: { actions: 'count' },
    INSTANCE_STARTED: { actions: ['noteStarted', 'decide'] },
    START_FAILED: { actions: ['noteFailure', 'decide'] },
    START_DEFERRED: { actions: ['noteDeferral', 'decide'] },
    LAUNCHES_DROPPED: { actions: ['dropOrdered', 'decide'] },
    PLACE: { actions: 'decide' },
    DEADLINE: { guard: 'due', actions: 'decide' },
  },
  states: {
    pending: {
      always: [
        { guard: 'deleting', target: 'deleting' },
        { guard: 'filled', target: 'active' },
      ],
      on: { REMOVED: { target: 'removed' } },
    },
    active: {
      always: { guard: 'deleting', target: 'deleting' },
      on: { REMOVED: { target: 'removed' } },
    },
    deleting: {
      initial: 'draining',
      states: {
        draining: { entry: 'awaitNothing', always: { guard: 'empty', target: 'removing' } },
        removing: {
          entry: ['remove', 'awaitRemoval'],
          always: { guard: 'following', target: 'draining' },
          on: {
            REMOVE_OUTCOME_UNKNOWN: { target: 'unremoved' },
            DEADLINE: { guard: 'due', target: 'unremoved' },
          },
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
});

export const becameReady = ({ counts: old }: Tallied, { counts }: Tallied): boolean =>
  counts.starting < old.starting && counts.idle > old.idle;

/** A new pause means that a start just failed at the leader. */
const followedBreaker = (
  { breaker, failedAt }: PoolContext,
  record: PoolRecord,
  now: number,
): Pick<PoolContext, 'breaker' | 'failedAt'> => ({
  breaker: record.breaker,
  failedAt: record.breaker.pausedUntil > breaker.pausedUntil ? now : failedAt,
});

/** Also for another revision with the same definition. */
const proofOf = (
  context: PoolContext,
  { definition }: PoolRecord,
  { updated, now }: { readonly updated: PoolCounts; readonly now: number },
): Pick<PoolContext, 'proven' | 'provenAt' | 'lived'> => {
  const { lived } = provenIn(context, now);
  return {
    lived,
    proven: lived !== undefined && runsTheSame(lived, definition),
    provenAt: updated.idle > 0 ? now + PROOF_MS : 0,
  };
};

const endingOf = ({ leading, record, counts }: PoolContext): readonly PoolIntent[] =>
  leading && record.deleting === 'force' && counts.running > 0 ? [{ type: 'end-running' }] : [];
