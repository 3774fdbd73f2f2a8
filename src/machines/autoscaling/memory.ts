import type { AutoscalingGroup } from '../../model/envs/autoscaling-group.ts';
import type {
  GrowthLimit,
  ScalingDecision,
  TroubleReason,
} from '../../model/envs/scaling-decision.ts';
import { getOwn } from '../../lib/plain-data.ts';
import type { MemberObservation } from './observation.ts';
import { lowered, sampled, type SlidingWindow } from './window.ts';

export interface Saturation {
  readonly until: number;
  readonly reason: TroubleReason;
}

/** Bounded JSON, saved with the env. Times in ms; 0 means never. */
export interface GroupMemory {
  readonly seenAt: number;
  readonly grewAt: number;
  /** 0 also after a failed scale-up. */
  readonly coolingFrom: number;
  readonly lowSince: number;
  readonly claimedAt: number;
  readonly firstAt: number;
  readonly idle: SlidingWindow;
  readonly recommended: SlidingWindow;
  readonly saturated: Readonly<Record<string, Saturation>>;
  readonly grown: Readonly<Record<string, number>>;
  /** When each reported limit last applied, by message. */
  readonly limited: Readonly<Record<string, number>>;
  readonly last: number;
  /** May not be applied yet. */
  readonly pending?: ScalingDecision;
  /**
   * The saving leader evaluated no more after this. Without it, unsaved evaluations are missing.
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

const BLIND_MS = 90_000;

const HANDOVER_MS = 15_000;

const LEAST_SATURATION_MS = 5_000;

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

/** Forgets what the previous leader may have observed without saving it. */
export const takenOver = ({ handedOver, ...memory }: GroupMemory, now: number): GroupMemory =>
  handedOver && now - memory.seenAt <= HANDOVER_MS
    ? memory
    : {
        ...unseen(memory),
        lowSince: 0,
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

/** The member does not grow for a while; others may at once. */
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

const LIMIT_FORGOTTEN_MS = 300_000;

const MOST_LIMITS = 64;

export const newLimits = (
  { limited }: GroupMemory,
  limits: readonly GrowthLimit[],
): readonly GrowthLimit[] => limits.filter(({ message }) => getOwn(limited, message) === undefined);

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

/** Whether a successor must know the change at once. */
export const isOutdated = (saved: GroupMemory, { saturated, limited }: GroupMemory): boolean =>
  saved.handedOver === true ||
  Object.keys(saved.limited).some((message) => getOwn(limited, message) === undefined) ||
  Object.entries(saturated).some(
    ([member, { until }]) => until > (getOwn(saved.saturated, member)?.until ?? 0),
  );

/** Two leaders may have used one id. */
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

/** Returns the same object if all stay. */
const only = <T>(
  entries: Readonly<Record<string, T>>,
  keep: (name: string, value: T) => boolean,
): Readonly<Record<string, T>> => {
  const all = Object.entries(entries);
  const kept = all.filter(([name, value]) => keep(name, value));
  return kept.length === all.length ? entries : Object.fromEntries(kept);
};
