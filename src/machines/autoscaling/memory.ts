import type { AutoscalingGroup } from '../../model/envs/autoscaling-group.ts';
import type {
  GrowthLimit,
  ScalingDecision,
  TroubleReason,
} from '../../model/envs/scaling-decision.ts';
import { getOwn } from '../../lib/get-own.ts';
import type { MemberObservation } from './observation.ts';
import { lowered, sampled, type SlidingWindow } from './window.ts';

export interface Saturation {
  readonly until: number;
  readonly reason: TroubleReason;
}

/**
 * Holds what an evaluation must know of those before it. Plain JSON and bounded, so that it is
 * saved with the env: with each decision, each saturation, and where a leader hands over. Moments
 * in milliseconds; 0: never.
 */
export interface GroupMemory {
  readonly seenAt: number;
  readonly grewAt: number;
  /** From when the cooldown counts; 0 also after a scale-up that failed. */
  readonly coolingFrom: number;
  /** Since when too few are idle. */
  readonly lowSince: number;
  readonly claimedAt: number;
  /** When it was first looked at. */
  readonly firstAt: number;
  /** The least idle count. */
  readonly idle: SlidingWindow;
  /** The highest recommendation. */
  readonly recommended: SlidingWindow;
  /** By member. */
  readonly saturated: Readonly<Record<string, Saturation>>;
  /** By member: when it was last scaled up. */
  readonly grown: Readonly<Record<string, number>>;
  /** Limits that a decision told of, by message: when each was last in the way. */
  readonly limited: Readonly<Record<string, number>>;
  /** The id of the last decision. */
  readonly last: number;
  /** A decision that is saved and perhaps not carried out. */
  readonly pending?: ScalingDecision;
  /**
   * Whoever saved this looked no more afterwards. Without it looks are missing that nobody saved.
   */
  readonly handedOver?: true;
}

export const NO_MEMORY: GroupMemory = {
  seenAt: 0,
  grewAt: 0,
  coolingFrom: 0,
  lowSince: 0,
  claimedAt: 0,
  firstAt: 0,
  idle: [],
  recommended: [],
  saturated: {},
  grown: {},
  limited: {},
  last: 0,
};

/** A group that was not looked at for so long is not known: its windows begin anew. */
const BLIND_MS = 90_000;

/**
 * The last look of a leader that hands over, and the first one of the next, are at most so far
 * apart.
 */
const HANDOVER_MS = 15_000;

/** A saturated member is left alone for this long at least. */
const LEAST_SATURATION_MS = 5_000;

/** The memory with what is seen now; of members that are no more it forgets. */
export const looking = (
  memory: GroupMemory,
  members: readonly MemberObservation[],
  { group, now }: { readonly group: AutoscalingGroup; readonly now: number },
): GroupMemory => {
  const known = now - memory.seenAt > BLIND_MS ? unseen(memory) : memory;
  const isThere = (name: string): boolean => members.some((member) => member.name === name);
  const idle = members.reduce((sum, member) => sum + (member.reachable ? member.idle : 0), 0);
  return {
    ...known,
    seenAt: now,
    firstAt: memory.firstAt || now,
    claimedAt: Math.max(memory.claimedAt, ...members.map((member) => member.claimedAt)),
    idle: sampled(
      known.idle,
      { value: idle, at: now },
      { extreme: 'least', spanMs: group.scaleDownPolicy.idleTimeoutSeconds * 1_000 },
    ),
    saturated: only(memory.saturated, (name, { until }) => until > now && isThere(name)),
    grown: only(memory.grown, isThere),
  };
};

/**
 * As its next leader begins with it: what the one before saw and did not save may have been
 * anything.
 */
export const takenOver = ({ handedOver, ...memory }: GroupMemory, now: number): GroupMemory =>
  handedOver && now - memory.seenAt <= HANDOVER_MS
    ? memory
    : {
        ...unseen(memory),
        lowSince: 0,
        // when each was last in the way is not saved
        limited: Object.fromEntries(Object.keys(memory.limited).map((message) => [message, now])),
      };

const unseen = (memory: GroupMemory): GroupMemory => ({ ...memory, idle: [], recommended: [] });

export const recommending = (
  memory: GroupMemory,
  recommendation: number,
  { group, now }: { readonly group: AutoscalingGroup; readonly now: number },
): GroupMemory => ({
  ...memory,
  recommended: sampled(
    memory.recommended,
    { value: recommendation, at: now },
    { extreme: 'most', spanMs: group.scaleDownPolicy.stabilizationSeconds * 1_000 },
  ),
});

/** A member's scale-up failed: it is left alone for a while, and who else can is asked at once. */
export const saturating = (
  memory: GroupMemory,
  member: string,
  saturation: Saturation,
): GroupMemory => ({
  ...memory,
  coolingFrom: 0,
  saturated: { ...memory.saturated, [member]: saturation },
});

export const saturationUntil = (group: AutoscalingGroup, now: number, until = 0): number =>
  Math.max(
    now + LEAST_SATURATION_MS,
    now + group.scaleUpPolicy.saturationCooldownSeconds * 1_000,
    until,
  );

/** A limit that was not in the way for so long is told of again. */
const LIMIT_FORGOTTEN_MS = 300_000;

/** More are not remembered: those that were in the way last are. */
const MOST_LIMITS = 64;

/** Picks the limits that no decision told of lately. */
export const newLimits = (
  { limited }: GroupMemory,
  limits: readonly GrowthLimit[],
): readonly GrowthLimit[] => limits.filter(({ message }) => getOwn(limited, message) === undefined);

/** The memory where these limits are in the way now; of those that a decision told of. */
export const limitsHeld = (
  memory: GroupMemory,
  limits: readonly GrowthLimit[],
  now: number,
): GroupMemory => {
  const held = Object.entries(memory.limited)
    .map(([message, at]): readonly [string, number] => [
      message,
      limits.some((limit) => limit.message === message) ? now : at,
    ])
    .filter(([, at]) => now - at < LIMIT_FORGOTTEN_MS);
  return { ...memory, limited: Object.fromEntries(held) };
};

const limitsTold = (
  limited: GroupMemory['limited'],
  { at, limits = [] }: ScalingDecision,
): GroupMemory['limited'] =>
  Object.fromEntries(
    Object.entries({
      ...limited,
      ...Object.fromEntries(limits.map(({ message }) => [message, at])),
    })
      .toSorted(([, one], [, other]) => other - one)
      .slice(0, MOST_LIMITS),
  );

/** The memory once this was decided. */
export const deciding = (memory: GroupMemory, decision: ScalingDecision): GroupMemory => {
  const up = decision.changes.filter(({ from, to }) => to > from);
  const down = decision.changes.reduce((sum, { from, to }) => sum + Math.max(0, from - to), 0);
  const grew = up.length > 0;
  return {
    ...memory,
    grewAt: grew ? decision.at : memory.grewAt,
    coolingFrom: grew && decision.cause !== 'limits' ? decision.at : memory.coolingFrom,
    grown: grew
      ? { ...memory.grown, ...Object.fromEntries(up.map(({ member }) => [member, decision.at])) }
      : memory.grown,
    limited: limitsTold(memory.limited, decision),
    idle: decision.cause === 'failure' ? memory.idle : lowered(memory.idle, down),
    last: decision.id,
    pending: decision,
  };
};

/**
 * Whether the saved memory is of one who handed over, lacks that a member is left alone, or has a
 * limit that is to be told of again: a successor must know at once.
 */
export const isOutdated = (saved: GroupMemory, { saturated, limited }: GroupMemory): boolean =>
  saved.handedOver === true ||
  Object.keys(saved.limited).some((message) => getOwn(limited, message) === undefined) ||
  Object.entries(saturated).some(
    ([member, { until }]) => until > (getOwn(saved.saturated, member)?.until ?? 0),
  );

/** Whether both hold the same decision: two leaders may have given theirs one id. */
export const samePending = (
  { pending: one }: GroupMemory,
  { pending: other }: GroupMemory,
): boolean =>
  one !== undefined &&
  one.id === other?.id &&
  one.changes.length === other.changes.length &&
  one.changes.every(({ member, from, to }) =>
    other.changes.some(
      (change) => change.member === member && change.from === from && change.to === to,
    ),
  );

/** Keeps the entries that `keep` wants; the same object where nothing goes. */
const only = <T>(
  entries: Readonly<Record<string, T>>,
  keep: (name: string, value: T) => boolean,
): Readonly<Record<string, T>> => {
  const all = Object.entries(entries);
  const kept = all.filter(([name, value]) => keep(name, value));
  return kept.length === all.length ? entries : Object.fromEntries(kept);
};
