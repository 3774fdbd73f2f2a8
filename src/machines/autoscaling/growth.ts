import type { GroupCounts, GrowthLimit, TroubleReason } from '../../model/envs/scaling-decision.ts';
import { getOwn } from '../../lib/plain-data.ts';
import type { GroupMemory } from './memory.ts';
import { bufferOf, neededIdle, stepOf, type Moment } from './modes.ts';
import { boundsOf, roomOf, sumOf, unansweredOf, unservedOf, type Slot } from './slots.ts';

export interface Growth {
  readonly add: number;
  /** Before limits. */
  readonly missing: number;
  readonly lowSince: number;
  readonly limitedBy: readonly string[];
  /** Undefined if never or unknown. */
  readonly retryAt: number | undefined;
  /** Limits that only a change ends, not time. */
  readonly limits: readonly GrowthLimit[];
}

interface Hold {
  readonly why: string;
  readonly until: number | undefined;
}

/**
 * Starting instances count as existing. Each waiting claim gets an instance at once: steps apply
 * only to growth ahead of need.
 */
export const growthOf = (slots: readonly Slot[], seen: GroupCounts, moment: Moment): Growth => {
  const { group, memory, now } = moment;
  const buffer = neededIdle(seen, moment);
  const unanswered = sumOf(slots, unansweredOf);
  const missing = Math.max(seen.pending + buffer - seen.idle - seen.starting, unanswered);
  const lowSince =
    seen.idle < bufferOf(group.scaleUpPolicy.mode, seen.running) || unanswered > 0
      ? memory.lowSince || now
      : 0;
  if (missing <= 0)
    return { add: 0, missing, lowSince, limitedBy: [], retryAt: undefined, limits: [] };
  const holds = holdsOf(seen, lowSince, moment);
  const bounds = boundsLeft(slots, seen, moment);
  const [least, step] = [
    sumOf(slots, unservedOf),
    holds.length > 0 ? 0 : stepOf(group.scaleUpPolicy.mode, seen.desired),
  ];
  const limits: readonly Bound[] =
    holds.length > 0
      ? bounds
      : [
          {
            most: Math.max(least, step),
            why: `${group.scaleUpPolicy.mode} adds ${step} at a time`,
            limits: [],
          },
          ...bounds,
        ];
  const add = Math.max(
    0,
    Math.min(holds.length > 0 ? least : missing, ...limits.map(({ most }) => most)),
  );
  if (add >= missing)
    return { add, missing, lowSince, limitedBy: [], retryAt: undefined, limits: [] };
  const known = holds.map(({ until }) => until).filter((until) => until !== undefined);
  return {
    add,
    missing,
    lowSince,
    limitedBy:
      holds.length > 0
        ? [...holds, ...bounds.filter(({ most }) => most <= add)].map(({ why }) => why)
        : limits.filter(({ most }) => most < missing).map(({ why }) => why),
    retryAt: holds.length > 0 && known.length === holds.length ? Math.max(...known) : undefined,
    limits: isQuiet(seen, moment) ? [] : distinct(bounds.filter(({ most }) => most <= add)),
  };
};

/** A quiet group adds nothing until a claim comes. */
export const isQuiet = (
  { idle, pending }: GroupCounts,
  {
    group: {
      scaleUpPolicy: { idleZeroQuietWindowSeconds },
    },
    memory,
    now,
  }: Moment,
): boolean =>
  idle === 0 &&
  pending === 0 &&
  idleZeroQuietWindowSeconds > 0 &&
  now - memory.claimedAt > idleZeroQuietWindowSeconds * 1_000;

const holdsOf = (seen: GroupCounts, lowSince: number, moment: Moment): readonly Hold[] => {
  const { group, memory, now } = moment;
  const { mode, cooldownSeconds, idleThresholdSeconds, idleZeroQuietWindowSeconds } =
    group.scaleUpPolicy;
  const hurried = mode === 'Aggressive' && seen.pending > seen.starting;
  const patientUntil = mode === 'Aggressive' ? 0 : lowSince + idleThresholdSeconds * 1_000;
  const coolUntil =
    memory.coolingFrom > 0 && !hurried ? memory.coolingFrom + cooldownSeconds * 1_000 : 0;
  const holds: Hold[] = [];
  if (mode === 'Conservative' && seen.starting > 0)
    holds.push({
      why: `Conservative waits for ${seen.starting} starting instances`,
      until: undefined,
    });
  if (now < patientUntil)
    holds.push({
      why: `too few instances are idle, for less than ${idleThresholdSeconds} s`,
      until: patientUntil,
    });
  if (isQuiet(seen, moment))
    holds.push({
      why: `no instance is idle, and no claim came for ${idleZeroQuietWindowSeconds} s`,
      until: undefined,
    });
  if (now < coolUntil)
    holds.push({
      why: `cooldown: ${inSeconds(coolUntil - now)} left of ${cooldownSeconds} s`,
      until: coolUntil,
    });
  return holds;
};

interface Bound {
  readonly most: number;
  readonly why: string;
  readonly limits: readonly GrowthLimit[];
}

const distinct = (bounds: readonly Bound[]): readonly GrowthLimit[] => [
  ...new Map(
    bounds.flatMap(({ limits }) => limits).map((limit) => [limit.message, limit]),
  ).values(),
];

const boundsLeft = (
  slots: readonly Slot[],
  seen: GroupCounts,
  { group, memory, now }: Moment,
): readonly Bound[] => {
  const { most } = boundsOf(slots, group);
  const quota = quotaOf(slots);
  const refusals = slots
    .map((slot) => refusalOf(slot, memory, now))
    .filter((one) => one !== undefined);
  return [
    {
      most: most - seen.desired,
      why: `the group's maximum is ${most}`,
      limits: [{ reason: 'MaxReplicasReached', message: `the group's maximum is ${most}` }],
    },
    { most: quota, why: NO_QUOTA.message, limits: [NO_QUOTA] },
    {
      most: sumOf(slots, roomOf),
      why: refusals.length > 0 ? refusals.map(({ why }) => why).join('; ') : 'no member can grow',
      limits: refusals.map(({ limit }) => limit),
    },
  ];
};

/** Members of one cluster report the same quota. */
const quotaOf = (slots: readonly Slot[]): number => {
  const reachable = slots.filter(({ seen }) => seen.reachable);
  const clusters = new Set(reachable.map(({ seen: { cluster } }) => cluster));
  const left = [...clusters].map((cluster) => {
    const own = reachable.filter(({ seen }) => seen.cluster === cluster);
    const least = Math.min(...own.map(({ seen: { quota } }) => quota ?? Number.MAX_SAFE_INTEGER));
    return least - sumOf(own, ({ to, seen: { desired } }) => Math.max(0, to - desired));
  });
  return left.length === 0 ? Number.MAX_SAFE_INTEGER : left.reduce((sum, each) => sum + each, 0);
};

const NO_QUOTA: GrowthLimit = { reason: 'QuotaReached', message: 'the quota is used up' };

interface Refusal {
  readonly why: string;
  readonly limit: GrowthLimit;
}

const refusalOf = (slot: Slot, memory: GroupMemory, now: number): Refusal | undefined => {
  const { name, seen, ceiling, to } = slot;
  const saturation = getOwn(memory.saturated, name);
  if (!seen.reachable) return refused('MemberUnreachable', `${name} cannot be reached`);
  if (saturation)
    return {
      why: `${name} is saturated for ${inSeconds(saturation.until - now)} (${saturation.reason})`,
      limit: SATURATED[saturation.reason](name),
    };
  if (to >= ceiling) return refused('MaxReplicasReached', `${name} has its maximum, ${ceiling}`);
  if (seen.quota !== undefined && to - seen.desired >= seen.quota)
    return { why: `${name}: the quota is used up`, limit: NO_QUOTA };
  return undefined;
};

const refused = (reason: GrowthLimit['reason'], message: string): Refusal => ({
  why: message,
  limit: { reason, message },
});

const SATURATED: Readonly<Record<TroubleReason, (member: string) => GrowthLimit>> = {
  quota: () => NO_QUOTA,
  unschedulable: (member) => ({
    reason: 'MemberUnschedulable',
    message: `no capacity for instances of ${member}`,
  }),
  'start failures': (member) => ({
    reason: 'MemberStartFailures',
    message: `instances of ${member} do not start`,
  }),
};

const inSeconds = (ms: number): string => `${Math.ceil(ms / 1_000)} s`;
