import {
  type End,
  type EndReason,
  type FinishedSandbox,
  type InstanceRecord,
  type SandboxStatus,
  wordsOfEnded,
  type LaunchOrder,
  type Vitals,
} from '../../model/sandbox.ts';
import type { SandboxContext, Ended, SandboxEvent, SandboxInput } from './events.ts';
import { expiryOf } from '../../model/pools/claim-rules.ts';

export const RETRY_MS = 1_000;

/** Time for the leader to act, before this replica checks who leads. */
export const LEADER_MS = 5_000;

/**
 * An end is checked this long after its forced deadline: longer than the driver's own last attempt.
 */
export const OVERRUN_MS = 6_000;

export const LAUNCH_MS = 15_000;

export const CLAIM_REPEAT_MS = 100;

/**
 * An instance that lives this long counts as started; otherwise a command that ends at once would
 * be replaced without a pause.
 */
export const STEADY_MS = 10_000;

const OUR_DOING: ReadonlySet<EndReason> = new Set([
  'deleted',
  'force-deleted',
  'idle-timeout',
  'max-lifetime',
  'claim-failed',
]);

/** A request or an expiry ended it, as opposed to a retirement or its own death. */
export const isOurDoing = (end: End | undefined): boolean =>
  end !== undefined && OUR_DOING.has(end.reason);

const FAILURES: ReadonlySet<EndReason> = new Set([
  'start-failed',
  'start-timeout',
  'lost',
  'exited',
  'oom-killed',
  'killed',
  'container-ended',
]);

/** A dead unclaimed instance shows Failed until its cleanup. */
export const statusOf = (state: string, context: SandboxContext): SandboxStatus => {
  switch (state) {
    // Told to end before its launch was known to have taken effect.
    case 'starting':
      return context.end ? 'Stopping' : 'Starting';
    case 'idle':
    case 'claiming':
      return 'Idle';
    case 'running':
      return 'Running';
    case 'completed':
      return 'Completed';
    // An unclaimed instance has failed once nothing of it runs.
    default:
      return context.record?.claim === undefined &&
        context.gone &&
        context.end &&
        FAILURES.has(context.end.reason)
        ? 'Failed'
        : 'Stopping';
  }
};

/** Undefined if nobody claimed it. */
export const finishedOf = (
  context: SandboxContext,
  record: InstanceRecord | undefined,
): FinishedSandbox | undefined => {
  if (!record?.claim) return undefined;
  const at = context.gone?.at ?? record.claim.claimedAt;
  return {
    id: record.id,
    poolUid: record.poolUid,
    poolName: record.poolName,
    owner: record.claim.owner,
    createdAt: record.createdAt,
    claimedAt: record.claim.claimedAt,
    startedAt: context.startedAt,
    terminatedAt: at,
    recycledAt: at,
    cpu: record.cpu,
    memory: record.memory,
    containerImages: record.containerImages,
    endReason: context.end?.reason ?? 'lost',
    exitCode: context.end?.exitCode ?? null,
  };
};

export const ordered = (launchOrder: LaunchOrder, now: number): SandboxContext => ({
  id: launchOrder.record.id,
  poolUid: launchOrder.record.poolUid,
  launchOrder,
  record: undefined,
  startedAt: undefined,
  availableAt: undefined,
  claiming: undefined,
  activeAt: now,
  working: 0,
  end: undefined,
  asked: false,
  forgotten: false,
  gone: undefined,
  deadline: undefined,
});

export const restored = (
  fact: Extract<SandboxInput, { fact: unknown }>['fact'],
  now: number,
): SandboxContext => {
  const blank: SandboxContext = {
    id: fact.id,
    poolUid: fact.record.poolUid,
    launchOrder: undefined,
    record: fact.record,
    startedAt: undefined,
    availableAt: undefined,
    claiming: undefined,
    activeAt: now,
    working: 0,
    end: fact.record.end,
    asked: false,
    forgotten: false,
    gone: undefined,
    deadline: undefined,
  };
  const known = { ...blank, ...learned(blank, { fact, now }) };
  const { vitals } = fact;
  return vitals.kind === 'available'
    ? { ...known, availableAt: Math.min(now, vitals.since ?? vitals.startedAt) }
    : known;
};

/**
 * Replaces a record only by a later state: claimed never becomes idle again, and a deletion stays.
 */
export const learned = (
  context: SandboxContext,
  {
    fact,
    now,
  }: { readonly fact: Extract<SandboxEvent, { type: 'FACT' }>['fact']; readonly now: number },
): Partial<SandboxContext> => {
  const { vitals } = fact;
  const dropped = !context.record && !context.launchOrder;
  const record = fact.record && !dropped ? further(context.record, fact.record) : context.record;
  const gone = goneAfter(context.gone, vitals, now);
  return {
    record,
    gone,
    startedAt: 'startedAt' in vitals ? vitals.startedAt : context.startedAt,
    availableAt: vitals.kind === 'available' && !gone ? (context.availableAt ?? now) : undefined,
    forgotten: context.forgotten || (!fact.record && context.record !== undefined),
    ...('endsBy' in vitals ? { endsBy: vitals.endsBy } : {}),
    ...('since' in vitals ? { since: vitals.since } : {}),
    ...unreadiness(context, vitals, now),
    ...startShown(context, vitals),
    ...endedContainers(context, vitals),
    ...(record?.end ? { end: record.end } : {}),
  };
};

const unreadiness = (
  { unreadyAt }: SandboxContext,
  vitals: Vitals,
  now: number,
): Pick<SandboxContext, 'unreadyAt'> => {
  if (vitals.kind === 'unavailable' && !vitals.nodeInTrouble)
    return { unreadyAt: unreadySince(vitals, unreadyAt, now) };
  return unreadyAt === undefined ? {} : { unreadyAt: undefined };
};

const startShown = (
  context: SandboxContext,
  vitals: Vitals,
): Pick<SandboxContext, 'unready' | 'hindrance' | 'unlaunched'> => {
  const starting: Partial<Extract<Vitals, { kind: 'starting' }>> =
    vitals.kind === 'starting' ? vitals : {};
  const { reason, advice, hindrance, unlaunched = false } = starting;
  return {
    ...(reason === undefined ? {} : { unready: withAdvice(reason, advice) }),
    ...(hindrance === context.hindrance ? {} : { hindrance }),
    ...(unlaunched || context.unlaunched ? { unlaunched } : {}),
  };
};

const endedContainers = (
  { endedContainers: known }: SandboxContext,
  vitals: Vitals,
): Pick<SandboxContext, 'endedContainers'> =>
  'endedContainers' in vitals && !sameNames(vitals.endedContainers, known)
    ? { endedContainers: vitals.endedContainers }
    : {};

/** An instance on a leaving node is unready forever, so that nobody waits for it. */
const unreadySince = (
  { nodeLeaving }: Extract<Vitals, { kind: 'unavailable' }>,
  before: number | undefined,
  now: number,
): number => (nodeLeaving ? 0 : before || now);

const withAdvice = (reason: string, advice: string | undefined): string =>
  advice === undefined ? reason : `${reason}; ${advice}`;

/** Keeps its first end; a later fact may only add that nothing remains. */
const goneAfter = (known: Ended | undefined, vitals: Vitals, now: number): Ended | undefined => {
  if (vitals.kind !== 'gone') return known;
  const { exitCode, removed, outOfMemory, remains } = vitals;
  if (!known)
    return {
      at: now,
      exitCode,
      ...(removed ? { removed } : {}),
      ...(outOfMemory ? { outOfMemory } : {}),
      ...(remains ? { remains } : {}),
    };
  if (!known.remains || remains) return known;
  const { remains: _remains, ...entirely } = known;
  return entirely;
};

const sameNames = (one: object | undefined, other: object | undefined): boolean =>
  Object.keys(one ?? {}).join() === Object.keys(other ?? {}).join();

/** The shown one if they are equal. */
export const further = (known: InstanceRecord | undefined, shown: InstanceRecord): InstanceRecord =>
  known && RANK[shown.state] < RANK[known.state] ? known : shown;

const RANK = { idle: 0, claimed: 1, ending: 2 } as const;

/** A request to end outweighs a mere retirement. */
export const mayNoteEnd = (context: SandboxContext, event: SandboxEvent): boolean =>
  !context.end ||
  (event.type === 'END' && !isOurDoing(context.end) && !context.record?.end && !context.gone);

/** A deletion on this replica, or the settling or return of its own claim. */
export const isAsked = (context: SandboxContext, event: SandboxEvent): boolean =>
  (event.type === 'END' && (event.reason === 'deleted' || event.reason === 'claim-failed')) ||
  context.claiming !== undefined;

export const endOf = (context: SandboxContext, event: SandboxEvent): End => {
  if (event.type === 'END' || event.type === 'EXPIRED')
    return { reason: event.reason, exitCode: null };
  if (event.type === 'FACT' && context.record?.claim) return { reason: 'deleted', exitCode: null };
  const claim = context.record?.claim;
  if (event.type === 'DEADLINE' && claim)
    return {
      reason: expiryOf(claim, context.activeAt, context.working)?.reason ?? 'deleted',
      exitCode: null,
    };
  return { reason: 'retired', exitCode: null };
};

export const failureOf = (
  { unready, endedContainers }: SandboxContext,
  event: SandboxEvent,
): string => {
  if (event.type === 'FACT' && event.fact.vitals.kind === 'gone') return event.fact.vitals.reason;
  if (endedContainers) return wordsOfEnded(endedContainers);
  if (event.type === 'LAUNCH_REFUSED' || event.type === 'LAUNCH_DEFERRED') return event.reason;
  return `did not become ready within startupTimeout${unready === undefined ? '' : `: ${unready}`}`;
};

/** If the value is missing, the machine has a fault, and the actor is recreated from its fact. */
export const proven = <T>(value: T | undefined): T => {
  if (value === undefined) throw new Error('the sandbox machine lacks what its state promises');
  return value;
};
