import { assign, emit, setup } from 'xstate';
import { expiryOf } from '../../model/pools/claim-rules.ts';
import {
  CLAIM_REPEAT_MS,
  finishedOf,
  isOurDoing,
  LAUNCH_MS,
  LEADER_MS,
  OVERRUN_MS,
  RETRY_MS,
  STEADY_MS,
  endOf,
  failureOf,
  further,
  isAsked,
  learned,
  mayNoteEnd,
  proven,
} from './arithmetic.ts';
import type { End } from '../../model/sandbox.ts';
import type {
  SandboxContext,
  SandboxEvent,
  SandboxInput,
  SandboxIntent,
  SandboxTag,
} from './events.ts';

export const sandboxSetup = setup({
  types: {
    context: {} as SandboxContext,
    events: {} as SandboxEvent,
    input: {} as SandboxInput,
    emitted: {} as SandboxIntent,
    tags: {} as SandboxTag,
  },
  guards: {
    born: ({ context }) => context.launchOrder !== undefined,
    claimed: ({ context }) => context.record?.claim !== undefined,
    unclaimed: ({ context }) =>
      context.record?.claim === undefined && context.record?.state !== 'ending',
    ending: ({ context }) => context.end !== undefined || context.record?.state === 'ending',
    endNoted: ({ context }) => context.record?.state === 'ending',
    mayRunOn: ({ context }) => context.record?.state === 'claimed' && !isOurDoing(context.end),
    gone: ({ context }) => context.gone !== undefined,
    goneEntirely: ({ context }) => context.gone !== undefined && !context.gone.remains,
    broken: ({ context }) => context.endedContainers !== undefined,
    brokeYoung: ({ context }) =>
      context.endedContainers !== undefined && context.deadline !== undefined,
    asked: ({ context }) => context.asked,
    unfit: ({ context }) =>
      context.gone !== undefined ||
      context.startedAt === undefined ||
      context.endedContainers !== undefined,
    started: ({ context }) => context.startedAt !== undefined,
    available: ({ context }) => context.availableAt !== undefined,
    unavailable: ({ context }) => context.availableAt === undefined,
    unsteady: ({ context }) => context.deadline !== undefined,
    diedYoung: ({ context }) => context.gone !== undefined && context.deadline !== undefined,
    neverBorn: ({ context, event }) =>
      event.type === 'FACT' && event.fact.record === undefined && context.record === undefined,
    recordGone: ({ event }) => event.type === 'FACT' && event.fact.record === undefined,
    unlaunched: ({ context }) => context.unlaunched === true,
    dueUnlaunched: ({ context, event }) =>
      context.unlaunched === true &&
      event.type === 'DEADLINE' &&
      context.deadline !== undefined &&
      event.now >= context.deadline,
    /** The claim that it was launched for did not come. */
    dueUnclaimed: ({ context, event }) =>
      context.record?.claimBy !== undefined &&
      event.type === 'DEADLINE' &&
      context.deadline !== undefined &&
      event.now >= context.deadline,
    shownAvailable: ({ event }) =>
      event.type === 'FACT' &&
      event.fact.record !== undefined &&
      event.fact.vitals.kind === 'available',
    shownClaimed: ({ event }) => event.type === 'FACT' && event.fact.record?.claim !== undefined,
    shownUnclaimed: ({ event }) => event.type === 'FACT' && event.fact.record?.state === 'idle',
    due: ({ context, event }) =>
      event.type === 'DEADLINE' && context.deadline !== undefined && event.now >= context.deadline,
    /** Merely surplus. */
    dueSpared: ({ context, event }) => {
      const { deadline, asked, gone, end, startedAt, record } = context;
      if (event.type !== 'DEADLINE' || deadline === undefined || event.now < deadline) return false;
      if (asked || gone || record?.state !== 'idle' || end?.reason !== 'retired') return false;
      return startedAt !== undefined || event.now < record.createdAt + record.startupTimeoutMs;
    },
    forgottenAndGone: ({ context }) =>
      context.gone !== undefined &&
      !context.gone.remains &&
      (context.forgotten || context.record === undefined),
    expired: ({ context, event }) => {
      const claim = context.record?.claim;
      if (!('now' in event) || !claim) return false;
      const expiry = expiryOf(claim, context.activeAt, context.working);
      return expiry !== undefined && event.now >= expiry.at;
    },
    repeated: ({ context }) => context.claiming?.repeated === true,
    requestOver: ({ context, event }) =>
      'now' in event && context.claiming !== undefined && event.now >= context.claiming.until,
  },
  actions: {
    learn: assign(({ context, event }) => (event.type === 'FACT' ? learned(context, event) : {})),
    keepRecord: assign(({ context, event }) =>
      'record' in event
        ? { record: further(context.record, event.record), launchOrder: undefined }
        : {},
    ),
    noteLaunched: assign(({ context, event }) => ({
      ...(event.type === 'LAUNCHED' ? { launchedAt: event.now } : {}),
      ...(context.unlaunched ? { unlaunched: false } : {}),
    })),
    dropRecord: assign({ record: undefined, launchOrder: undefined }),
    dropLaunchOrder: assign({ launchOrder: undefined }),
    beginClaim: assign(({ event }) =>
      event.type === 'CLAIM'
        ? {
            claiming: { claim: event.claim, until: event.until, repeated: false },
            deadline: event.until,
          }
        : {},
    ),
    beginRunning: assign(({ context, event }) => ({
      claiming: undefined,
      activeAt: Math.max(
        context.activeAt,
        context.record?.claim?.claimedAt ?? 0,
        'now' in event ? event.now : 0,
      ),
    })),
    markActive: assign(({ event }) => ('now' in event ? { activeAt: event.now } : {})),
    markActiveThen: assign(({ context, event }) =>
      event.type === 'STILL_ACTIVE' ? { activeAt: Math.max(context.activeAt, event.activeAt) } : {},
    ),
    beginWork: assign(({ context, event }) => ({
      working: context.working + 1,
      activeAt: 'now' in event ? event.now : context.activeAt,
    })),
    endWork: assign(({ context, event }) => ({
      working: Math.max(0, context.working - 1),
      activeAt: 'now' in event ? event.now : context.activeAt,
    })),
    awaitExpiry: assign(({ context }) => {
      const claim = context.record?.claim;
      return { deadline: claim && expiryOf(claim, context.activeAt, context.working)?.at };
    }),
    awaitRetry: assign(({ context, event }) => ({
      deadline: ('now' in event ? event.now : context.activeAt) + RETRY_MS,
    })),
    awaitLeader: assign(({ context, event }) => ({
      deadline: ('now' in event ? event.now : context.activeAt) + LEADER_MS,
    })),
    awaitGone: assign(({ context, event }) => {
      const now = 'now' in event ? event.now : context.activeAt;
      return { deadline: Math.max(now + LEADER_MS, (context.endsBy ?? 0) + OVERRUN_MS) };
    }),
    awaitRequest: assign(({ context }) =>
      context.claiming
        ? { claiming: { ...context.claiming, repeated: true }, deadline: context.claiming.until }
        : {},
    ),
    awaitRepeat: assign(({ context, event }) => ({
      deadline: ('now' in event ? event.now : context.activeAt) + CLAIM_REPEAT_MS,
    })),
    awaitLaunch: assign(({ context, event }) => ({
      deadline: ('now' in event ? event.now : context.activeAt) + LAUNCH_MS,
    })),
    /** Launch attempts do not use up its time. */
    awaitStart: assign(({ context }) => {
      const record = context.record ?? context.launchOrder?.record;
      const startedBy =
        Math.max(record?.createdAt ?? 0, context.launchedAt ?? 0) + (record?.startupTimeoutMs ?? 0);
      return { deadline: Math.min(startedBy, record?.claimBy ?? startedBy) };
    }),
    /**
     * An instance that has lived long enough is steady at once; one launched for a claim waits for
     * that claim.
     */
    awaitSteady: assign(({ context: { record, availableAt, startedAt, activeAt }, event }) => {
      if (record?.claimBy !== undefined) {
        const now = 'now' in event ? event.now : activeAt;
        return { deadline: Math.max(record.claimBy, now + LEADER_MS) };
      }
      const at = (availableAt ?? startedAt ?? activeAt) + STEADY_MS;
      return { deadline: at > activeAt ? at : undefined };
    }),
    awaitNothing: assign({ deadline: undefined }),
    noteEnd: assign(({ context, event }) => ({
      asked: context.asked || isAsked(context, event),
      ...(mayNoteEnd(context, event) ? { end: endOf(context, event) } : {}),
    })),
    forgetEnd: assign({ end: undefined }),
    spare: assign(({ event }) => ({
      end: undefined,
      ...('now' in event ? { activeAt: event.now } : {}),
    })),
    startTimedOut: assign(({ context }) =>
      context.end ? {} : { end: { reason: 'start-timeout' as const, exitCode: null } },
    ),
    startFailed: assign(({ context }) =>
      context.end ? {} : { end: { reason: 'start-failed' as const, exitCode: null } },
    ),
    died: assign(({ context }) => {
      if (context.end) return {};
      const exitCode = context.gone?.exitCode ?? null;
      const reason = context.gone?.outOfMemory
        ? 'oom-killed'
        : exitCode === null
          ? 'lost'
          : 'exited';
      return { end: { reason, exitCode } satisfies End };
    }),
    broke: assign(({ context }) =>
      context.end ? {} : { end: { reason: 'container-ended' as const, exitCode: null } },
    ),
    launch: emit(({ context }): SandboxIntent => ({
      type: 'launch',
      launchOrder: proven(context.launchOrder),
    })),
    claim: emit(({ context }): SandboxIntent => ({
      type: 'claim',
      claim: proven(context.claiming).claim,
      seen: proven(context.record),
    })),
    retire: emit(({ context }): SandboxIntent => {
      const {
        revision,
        poolOwner: { namespace },
      } = proven(context.record);
      return { type: 'retire', seen: revision, namespace, asked: context.asked };
    }),
    release: emit(({ context }): SandboxIntent => ({
      type: 'release',
      end: context.end ?? { reason: 'lost', exitCode: null },
      asked: context.asked,
    })),
    confirmExpiry: emit(({ context }): SandboxIntent => {
      const claim = proven(proven(context.record).claim);
      return {
        type: 'confirm-expiry',
        claim,
        reason: proven(expiryOf(claim, context.activeAt, context.working)).reason,
      };
    }),
    look: emit({ type: 'look' } as SandboxIntent),
    lookPatiently: emit({ type: 'look', patient: true } as SandboxIntent),
    close: emit(({ context }): SandboxIntent => {
      const finished = finishedOf(context, context.record);
      return { type: 'close', ...(finished ? { finished } : {}) };
    }),
    reportStarted: emit({ type: 'report-start', outcome: 'started', reason: '' } as SandboxIntent),
    reportDeferred: emit(({ context, event }): SandboxIntent => ({
      type: 'report-start',
      outcome: 'deferred',
      reason: failureOf(context, event),
    })),
    /** A removed instance is not at fault; but if all are removed at once, launches pause. */
    reportFailed: emit(({ context, event }): SandboxIntent => ({
      type: 'report-start',
      outcome: context.gone?.removed
        ? 'deferred'
        : event.type === 'LAUNCH_REFUSED'
          ? 'refused'
          : 'failed',
      reason: failureOf(context, event),
    })),
  },
});
