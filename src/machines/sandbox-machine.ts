import { assign, emit, setup } from 'xstate';
import type { End } from '../model/sandbox.ts';
import { expiryOf, finishedOf, LAUNCH_MS, RETRY_MS, sameClaim } from './sandbox-arithmetic.ts';
import type { Birth, SandboxContext, SandboxEvent, SandboxInput, SandboxIntent } from './sandbox-events.ts';

/**
 * One instance, from launch to end: starting → idle (available, unavailable) → claiming → running → stopping → completed.
 *
 * Claimed at most once: CLAIM is legal in `idle.available` alone, and `running` is entered only by CLAIMED, the driver's
 * word that the durable write went through, or by a fact that shows it. Running is left only by END, by its own expiry,
 * or by a fact that it is gone. END is legal in every state. A claim or retirement of unknown outcome is looked at
 * uncached; past its request's deadline a claim is settled by the conditional retirement, so that it can't land later.
 */
export const sandboxMachine = setup({
  types: {
    context: {} as SandboxContext,
    events: {} as SandboxEvent,
    input: {} as SandboxInput,
    emitted: {} as SandboxIntent,
  },
  guards: {
    born: ({ context }) => context.birth !== undefined,
    claimed: ({ context }) => context.record?.claim !== undefined,
    ending: ({ context }) => context.end !== undefined,
    gone: ({ context }) => context.gone !== undefined,
    available: ({ context }) => context.availableAt !== undefined,
    ours: ({ context }) => sameClaim(context.record?.claim, context.claiming?.claim),
    recordGone: ({ event }) => event.type === 'FACT' && event.fact.record === undefined,
    due: ({ context, event }) => event.type === 'DEADLINE' && context.deadline !== undefined && event.now >= context.deadline,
    expired: ({ context, event }) => {
      const claim = context.record?.claim;
      if (event.type !== 'DEADLINE' || !claim) return false;
      const expiry = expiryOf(claim, context.activeAt, context.working);
      return expiry !== undefined && event.now >= expiry.at;
    },
    requestOver: ({ context, event }) => 'now' in event && context.claiming !== undefined && event.now >= context.claiming.until,
  },
  actions: {
    learn: assign(({ context, event }) => event.type === 'FACT' ? learned(context, event) : {}),
    keepRecord: assign(({ event }) => 'record' in event ? { record: event.record, birth: undefined } : {}),
    dropRecord: assign(({ context }) => context.record?.claim ? {} : { record: undefined }),
    beginClaim: assign(({ event }) => event.type === 'CLAIM'
      ? { claiming: { claim: event.claim, until: event.until }, deadline: event.until } : {}),
    beginRunning: assign(({ context, event }) => ({
      claiming: undefined,
      activeAt: 'now' in event ? event.now : context.activeAt,
    })),
    markActive: assign(({ event }) => 'now' in event ? { activeAt: event.now } : {}),
    beginWork: assign(({ context, event }) => ({ working: context.working + 1, activeAt: 'now' in event ? event.now : context.activeAt })),
    endWork: assign(({ context, event }) => ({ working: Math.max(0, context.working - 1), activeAt: 'now' in event ? event.now : context.activeAt })),
    awaitExpiry: assign(({ context }) => {
      const claim = context.record?.claim;
      return { deadline: claim && expiryOf(claim, context.activeAt, context.working)?.at };
    }),
    awaitRetry: assign(({ context, event }) => ({ deadline: ('now' in event ? event.now : context.activeAt) + RETRY_MS })),
    awaitLaunch: assign(({ context, event }) => ({ deadline: ('now' in event ? event.now : context.activeAt) + LAUNCH_MS })),
    awaitStart: assign(({ context }) => {
      const record = context.record ?? context.birth?.record;
      return { deadline: (record?.createdAt ?? 0) + (record?.startupTimeoutMs ?? 0) };
    }),
    awaitNothing: assign({ deadline: undefined }),
    noteEnd: assign(({ context, event }) => context.end ? {} : { end: endOf(context, event) }),
    forgetEnd: assign({ end: undefined }),
    startTimedOut: assign(({ context }) => context.end ? {} : { end: { reason: 'start-timeout' as const, exitCode: null } }),
    startFailed: assign(({ context }) => context.end ? {} : { end: { reason: 'start-failed' as const, exitCode: null } }),
    died: assign(({ context, event }) => {
      if (context.end) return {};
      const exitCode = event.type === 'FACT' && event.fact.vitals.kind === 'gone' ? event.fact.vitals.exitCode : null;
      return { end: { reason: exitCode === null ? 'lost' as const : 'exited' as const, exitCode } };
    }),
    launch: emit(({ context }): SandboxIntent => ({ type: 'launch', birth: proven(context.birth) })),
    claim: emit(({ context }): SandboxIntent => ({ type: 'claim', claim: proven(context.claiming).claim, seen: proven(context.record).revision })),
    retire: emit(({ context }): SandboxIntent => ({ type: 'retire', seen: proven(context.record).revision })),
    release: emit(({ context }): SandboxIntent => ({ type: 'release', end: context.end ?? { reason: 'lost', exitCode: null } })),
    look: emit({ type: 'look' } as SandboxIntent),
    close: emit(({ context }): SandboxIntent => {
      const finished = finishedOf(context, context.record);
      return { type: 'close', ...(finished ? { finished } : {}) };
    }),
    reportStarted: emit({ type: 'report-start', outcome: 'started', reason: '' } as SandboxIntent),
    reportFailed: emit(({ event }): SandboxIntent => ({ type: 'report-start', outcome: 'failed', reason: failureOf(event) })),
  },
}).createMachine({
  id: 'sandbox',
  context: ({ input }) => 'birth' in input ? ordered(input.birth, input.now) : restored(input.fact, input.now),
  initial: 'arriving',
  // A late or repeated answer that no state asks for changes nothing; what is observed is always learned.
  on: { FACT: { actions: 'learn' }, WORK_ENDED: { actions: 'endWork' } },
  states: {
    arriving: {
      always: [
        { guard: 'born', target: 'starting.ordered' },
        { guard: ({ context }) => context.record?.state === 'ending', target: 'stopping.releasing' },
        { guard: ({ context }) => context.record?.claim !== undefined && context.gone !== undefined, target: 'stopping.releasing', actions: 'died' },
        { guard: 'claimed', target: 'running' },
        { guard: 'gone', target: 'stopping.retiring', actions: 'died' },
        { guard: 'available', target: 'idle.available' },
        { guard: ({ context }) => context.startedAt !== undefined, target: 'idle.unavailable' },
        { target: 'starting.booting' },
      ],
    },
    starting: {
      initial: 'booting',
      states: {
        /** The birth is ordered and may or may not have landed; repeated under the same id until it is known. */
        ordered: {
          initial: 'launching',
          states: {
            launching: {
              entry: ['awaitLaunch', 'launch'],
              on: { LAUNCH_UNKNOWN: { target: 'uncertain' }, DEADLINE: { guard: 'due', target: 'uncertain' } },
            },
            uncertain: {
              entry: 'awaitRetry',
              on: { DEADLINE: { guard: 'due', target: 'launching' } },
            },
          },
          on: {
            LAUNCHED: [
              { guard: 'ending', target: '#sandbox.stopping.retiring', actions: 'keepRecord' },
              { target: 'booting', actions: 'keepRecord' },
            ],
            LAUNCH_REFUSED: { target: '#sandbox.completed', actions: ['startFailed', 'reportFailed'] },
            RETIRE: { actions: 'noteEnd' },
            END: { actions: 'noteEnd' },
            FACT: { actions: 'learn' },
          },
        },
        booting: {
          entry: 'awaitStart',
          always: [
            { guard: ({ context }) => context.record?.claim !== undefined, target: '#sandbox.running' },
            { guard: 'gone', target: '#sandbox.stopping.retiring', actions: ['startFailed', 'reportFailed'] },
            { guard: 'available', target: '#sandbox.idle.available', actions: 'reportStarted' },
          ],
          on: {
            FACT: { actions: 'learn' },
            DEADLINE: { guard: 'due', target: '#sandbox.stopping.retiring', actions: ['startTimedOut', 'reportFailed'] },
            RETIRE: { target: '#sandbox.stopping.retiring', actions: 'noteEnd' },
            END: { target: '#sandbox.stopping.retiring', actions: 'noteEnd' },
          },
        },
      },
    },
    idle: {
      initial: 'available',
      entry: 'awaitNothing',
      always: [
        { guard: 'claimed', target: 'running', actions: 'beginRunning' },
        { guard: 'gone', target: 'stopping.retiring', actions: 'died' },
      ],
      on: {
        RETIRE: { target: 'stopping.retiring', actions: 'noteEnd' },
        END: { target: 'stopping.retiring', actions: 'noteEnd' },
        FACT: { actions: 'learn' },
      },
      states: {
        available: {
          always: { guard: ({ context }) => context.availableAt === undefined, target: 'unavailable' },
          on: { CLAIM: { target: '#sandbox.claiming.writing', actions: 'beginClaim' } },
        },
        unavailable: { always: { guard: 'available', target: 'available' } },
      },
    },
    claiming: {
      initial: 'writing',
      on: {
        CLAIMED: [
          { guard: 'ending', target: 'stopping.releasing', actions: 'keepRecord' },
          { guard: 'gone', target: 'stopping.releasing', actions: ['keepRecord', 'died'] },
          { target: 'running', actions: ['keepRecord', 'beginRunning'] },
        ],
        END: { actions: 'noteEnd' },
      },
      states: {
        writing: {
          entry: 'claim',
          on: {
            CLAIM_UNSETTLED: { target: 'looking' },
            DEADLINE: { guard: 'due', target: 'looking' },
          },
        },
        /** The write failed, or its outcome is unknown: the record tells. */
        looking: {
          entry: ['awaitRetry', 'look'],
          on: {
            FACT: [
              { guard: 'recordGone', target: '#sandbox.stopping.waiting', actions: ['learn', 'dropRecord', 'died'] },
              { target: 'judging', actions: 'learn' },
            ],
            DEADLINE: { guard: 'due', target: 'looking', reenter: true },
          },
        },
        judging: {
          always: [
            { guard: ({ context }) => context.record?.state === 'ending', target: '#sandbox.stopping.releasing' },
            { guard: ({ context }) => context.record?.claim !== undefined && context.end !== undefined, target: '#sandbox.stopping.releasing' },
            { guard: 'claimed', target: '#sandbox.running', actions: 'beginRunning' },
            { guard: ({ context }) => context.gone !== undefined || context.end !== undefined, target: '#sandbox.stopping.retiring' },
            { guard: 'requestOver', target: '#sandbox.stopping.retiring', actions: 'noteEnd' },
            { target: 'writing' },
          ],
        },
      },
    },
    running: {
      entry: 'awaitExpiry',
      always: [
        { guard: 'gone', target: 'stopping.releasing', actions: 'died' },
        { guard: ({ context }) => context.record?.state === 'ending', target: 'stopping.releasing' },
      ],
      on: {
        FACT: { actions: 'learn' },
        ACTIVE: { actions: ['markActive', 'awaitExpiry'] },
        WORK_BEGAN: { actions: ['beginWork', 'awaitExpiry'] },
        WORK_ENDED: { actions: ['endWork', 'awaitExpiry'] },
        AMENDED: { actions: ['keepRecord', 'markActive', 'awaitExpiry'] },
        END: { target: 'stopping.releasing', actions: 'noteEnd' },
        DEADLINE: [
          { guard: 'expired', target: 'stopping.releasing', actions: 'noteEnd' },
          { actions: 'awaitExpiry' },
        ],
      },
    },
    stopping: {
      initial: 'releasing',
      states: {
        /** Unclaimed: its record is deleted if nobody claimed it meanwhile. */
        retiring: {
          entry: ['awaitRetry', 'retire'],
          on: {
            RETIRED: { target: 'waiting', actions: 'dropRecord' },
            RETIRE_UNSETTLED: { target: 'looking' },
            DEADLINE: { guard: 'due', target: 'looking' },
            CLAIMED: { target: '#sandbox.running', actions: ['keepRecord', 'beginRunning', 'forgetEnd'] },
          },
        },
        looking: {
          entry: ['awaitRetry', 'look'],
          on: {
            FACT: [
              { guard: 'recordGone', target: 'waiting', actions: ['learn', 'dropRecord'] },
              { guard: ({ event }) => event.fact.record?.claim !== undefined && event.fact.record.state === 'claimed',
                target: '#sandbox.running', actions: ['learn', 'beginRunning', 'forgetEnd'] },
              { target: 'retiring', actions: 'learn' },
            ],
            DEADLINE: { guard: 'due', target: 'looking', reenter: true },
          },
        },
        /** Claimed: the end is noted durably first, and holds whatever fails after it. */
        releasing: {
          entry: ['awaitRetry', 'release'],
          on: {
            RELEASED: { target: 'waiting' },
            RELEASE_UNSETTLED: { target: 'unnoted' },
            DEADLINE: { guard: 'due', target: 'releasing', reenter: true },
            FACT: { actions: 'learn' },
          },
        },
        unnoted: {
          entry: 'awaitRetry',
          on: { DEADLINE: { guard: 'due', target: 'releasing' }, RELEASED: { target: 'waiting' } },
        },
        /** Until nothing of it runs any more. */
        waiting: {
          entry: 'awaitRetry',
          always: { guard: 'gone', target: 'closing' },
          on: {
            FACT: { actions: 'learn' },
            DEADLINE: { guard: 'due', actions: ['look', 'awaitRetry'] },
          },
        },
        closing: {
          entry: ['awaitRetry', 'close'],
          on: {
            CLOSED: { target: '#sandbox.completed' },
            CLOSE_UNSETTLED: { target: 'unclosed' },
            DEADLINE: { guard: 'due', target: 'closing', reenter: true },
          },
        },
        unclosed: {
          entry: 'awaitRetry',
          on: { DEADLINE: { guard: 'due', target: 'closing' }, CLOSED: { target: '#sandbox.completed' } },
        },
      },
    },
    completed: { type: 'final', entry: 'awaitNothing' },
  },
});

const ordered = (birth: Birth, now: number): SandboxContext => ({
  id: birth.record.id, poolUid: birth.record.poolUid, birth, record: undefined, startedAt: undefined, availableAt: undefined,
  claiming: undefined, activeAt: now, working: 0, end: undefined, gone: undefined, deadline: undefined,
});

const restored = (fact: Extract<SandboxInput, { fact: unknown }>['fact'], now: number): SandboxContext => {
  const blank: SandboxContext = {
    id: fact.id, poolUid: fact.record.poolUid, birth: undefined, record: fact.record, startedAt: undefined, availableAt: undefined,
    claiming: undefined, activeAt: now, working: 0, end: fact.record.end, gone: undefined, deadline: undefined,
  };
  return { ...blank, ...learned(blank, { fact, now }) };
};

/** What a fact adds. A record is replaced only by one that is further on: claimed never turns idle again. */
const learned = (context: SandboxContext, { fact, now }: { readonly fact: Extract<SandboxEvent, { type: 'FACT' }>['fact']; readonly now: number }): Partial<SandboxContext> => {
  const record = fact.record && RANK[fact.record.state] >= RANK[context.record?.state ?? 'idle'] ? fact.record : context.record;
  const vitals = fact.vitals;
  const gone = context.gone ?? (vitals.kind === 'gone' ? { at: now } : undefined);
  const startedAt = 'startedAt' in vitals ? vitals.startedAt : context.startedAt;
  const availableAt = vitals.kind === 'available' && !gone ? context.availableAt ?? now : undefined;
  return { record, gone, startedAt, availableAt, ...(record?.end && !context.end ? { end: record.end } : {}) };
};

const RANK = { idle: 0, claimed: 1, ending: 2 } as const;

const endOf = (context: SandboxContext, event: SandboxEvent): End => {
  if (event.type === 'END') return { reason: event.reason, exitCode: null };
  const claim = context.record?.claim;
  if (event.type === 'DEADLINE' && claim) return { reason: expiryOf(claim, context.activeAt, context.working)?.reason ?? 'deleted', exitCode: null };
  return { reason: 'retired', exitCode: null };
};

const failureOf = (event: SandboxEvent): string => {
  if (event.type === 'FACT' && event.fact.vitals.kind === 'gone') return event.fact.vitals.reason;
  if (event.type === 'LAUNCH_REFUSED') return event.reason;
  return 'did not become ready within startupTimeout';
};

/** For values that the state itself guarantees; a miss is a fault of this machine, and the actor is rebuilt from its fact. */
const proven = <T>(value: T | undefined): T => {
  if (value === undefined) throw new Error('the sandbox machine lacks what its state promises');
  return value;
};
