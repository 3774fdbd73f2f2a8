import type { InstanceDefinition } from '../../model/templates/template.ts';
import type {
  BreakerStatus,
  PoolCounts,
  PoolPhase,
  PoolRecord,
  ReplicaSemantics,
} from '../../model/pools/pool.ts';
import { maxUnavailableOf } from '../../model/pools/max-unavailable.ts';

export interface RefillPolicy {
  readonly perSecond: number;
  readonly burst: number;
  readonly inFlight: number;
  readonly places?: PlacesPolicy;
}

/**
 * Pools of one machine share its processors, so an instance with a readiness probe needs a place
 * until it is ready or gone. `most` is reached after many instances became ready in time.
 */
export interface PlacesPolicy {
  readonly first: number;
  readonly most: number;
}

export const needsPlace = (
  { containers, endpoints = {} }: InstanceDefinition,
  { places }: RefillPolicy,
): boolean =>
  places !== undefined &&
  [...containers, ...Object.values(endpoints)].some(({ readinessProbe }) => readinessProbe);

/**
 * Instances that start together share the processors: after a failure half as many start at once,
 * at least 1.
 */
export const inFlightAfterFailure = (inFlight: number, starting: number): number =>
  Math.max(1, Math.min(inFlight, Math.floor(starting / 2)));

/** After `failures` in a row nothing starts for `firstPauseMs`, doubling to `maxPauseMs`. */
export interface BreakerPolicy {
  readonly failures: number;
  readonly firstPauseMs: number;
  readonly maxPauseMs: number;
}

export interface PoolPolicy {
  readonly replicaSemantics: ReplicaSemantics;
  readonly refill: RefillPolicy;
  readonly breaker: BreakerPolicy;
}

export interface TokenBucket {
  readonly tokens: number;
  readonly at: number;
}

export const presentOf = (
  counts: PoolCounts,
  ordered: number,
  semantics: ReplicaSemantics,
): number =>
  counts.starting +
  counts.idle +
  counts.unavailable +
  ordered +
  (semantics === 'total' ? counts.running : 0);

export const unclaimedOf = (counts: PoolCounts): number =>
  counts.starting + counts.idle + counts.unavailable;

export const refilled = (bucket: TokenBucket, now: number, policy: RefillPolicy): TokenBucket => ({
  tokens: Math.min(
    policy.burst,
    bucket.tokens + (Math.max(0, now - bucket.at) * policy.perSecond) / 1_000,
  ),
  at: Math.max(now, bucket.at),
});

export interface ScaleInput {
  readonly replicas: number;
  readonly counts: PoolCounts;
  readonly ordered: number;
  readonly bucket: TokenBucket;
  readonly inFlight: number;
  /** Unlimited if absent. */
  readonly places?: number;
  readonly breaker: BreakerStatus;
  readonly now: number;
}

export interface ScalePlan {
  readonly launch: number;
  readonly lacksPlaces: boolean;
  readonly retire: number;
  readonly bucket: TokenBucket;
  /** Undefined if only an event can change the plan. */
  readonly wakeAt: number | undefined;
}

/**
 * Existing and retiring instances together never exceed `replicas`. Launches nothing during the
 * breaker's pause, and one instance after it until that has started.
 */
export const planScale = (input: ScaleInput, policy: PoolPolicy): ScalePlan => {
  const bucket = refilled(input.bucket, input.now, policy.refill);
  const present = presentOf(input.counts, input.ordered, policy.replicaSemantics);
  const missing = input.replicas - present;
  if (missing < 0)
    return {
      ...NO_LAUNCH,
      retire: Math.min(-missing, unclaimedOf(input.counts)),
      bucket,
      wakeAt: undefined,
    };
  if (missing === 0) return { ...NO_LAUNCH, retire: 0, bucket, wakeAt: undefined };
  const starting = input.counts.starting + input.ordered;
  const launchable = missing - input.counts.retiring;
  const { failures, pausedUntil } = input.breaker;
  if (pausedUntil > input.now) return { ...NO_LAUNCH, retire: 0, bucket, wakeAt: pausedUntil };
  const room = (failures >= policy.breaker.failures ? 1 : input.inFlight) - starting;
  const affordable = atLeast0(Math.min(launchable, room, Math.floor(bucket.tokens)));
  const launch = Math.min(affordable, input.places ?? affordable);
  const waitsForTokens = affordable < Math.min(launchable, room);
  return {
    launch,
    lacksPlaces: launch < affordable,
    retire: 0,
    bucket: { tokens: bucket.tokens - launch, at: bucket.at },
    wakeAt: waitsForTokens
      ? input.now +
        Math.ceil(((1 - ((bucket.tokens - launch) % 1)) * 1_000) / policy.refill.perSecond)
      : undefined,
  };
};

const NO_LAUNCH = { launch: 0, lacksPlaces: false };

/** `isRefused`: nothing was started, and the next attempt may succeed. */
export interface StartFailure {
  readonly reason: string;
  readonly now: number;
  readonly isRefused?: true;
}

/**
 * Failures during the pause belong to earlier starts, so they do not count. A refusal costs little,
 * so its pause stays short.
 */
export const afterFailure = (
  breaker: BreakerStatus,
  { reason, now, isRefused }: StartFailure,
  policy: BreakerPolicy,
): BreakerStatus => {
  const failures = Math.min(breaker.failures + 1, 1_000);
  const short = reason.slice(0, MOST_REASON);
  if (failures < policy.failures) return { failures, pausedUntil: 0, reason: short };
  if (breaker.pausedUntil > now)
    return { failures: breaker.failures, pausedUntil: breaker.pausedUntil, reason: short };
  const longest = isRefused
    ? Math.min(policy.maxPauseMs, MOST_PAUSE_OF_REFUSED_MS)
    : policy.maxPauseMs;
  const pause = Math.min(
    longest,
    policy.firstPauseMs * 2 ** Math.min(30, failures - policy.failures),
  );
  return { failures, pausedUntil: now + pause, reason: short };
};

/** Pauses without counting a failure. */
export const afterDeferral = (
  breaker: BreakerStatus,
  { reason, now }: Pick<StartFailure, 'reason' | 'now'>,
  policy: BreakerPolicy,
): BreakerStatus => ({
  failures: breaker.failures,
  pausedUntil: Math.max(breaker.pausedUntil, now + policy.firstPauseMs),
  reason: reason.slice(0, MOST_REASON),
});

const MOST_REASON = 500;
/** A pool fills within ten seconds after its cluster accepts Pods again. */
const MOST_PAUSE_OF_REFUSED_MS = 8_000;

export interface PhaseInput {
  readonly record: Pick<PoolRecord, 'replicas' | 'deleting'>;
  readonly counts: PoolCounts;
  readonly ordered: number;
  readonly breaker: BreakerStatus;
  readonly filledOnce: boolean;
  readonly rolling: boolean;
}

/** A tripped breaker shows Degraded if some instance is usable, otherwise Failed. */
export const phaseOf = (input: PhaseInput, policy: PoolPolicy): PoolPhase => {
  if (input.record.deleting !== false) return 'Deleting';
  const tripped = input.breaker.failures >= policy.breaker.failures;
  if (input.rolling && !tripped) return 'Updating';
  const settled =
    !input.rolling &&
    input.counts.starting + input.ordered === 0 &&
    presentOf(input.counts, input.ordered, policy.replicaSemantics) === input.record.replicas;
  if (settled) return input.counts.unavailable > 0 ? 'Degraded' : 'Ready';
  if (tripped) return input.counts.idle + input.counts.running > 0 ? 'Degraded' : 'Failed';
  return input.filledOnce ? 'Scaling' : 'Pending';
};

/**
 * `current`: all unclaimed instances have the pool's revision. `blocked`: that revision fails to
 * start.
 */
export type RolloutState = 'current' | 'progressing' | 'blocked';

export interface RolloutInput {
  readonly wanted: number;
  readonly counts: PoolCounts;
  readonly updated: PoolCounts;
  readonly ordered: number;
  /** Wanted instances that are not even ordered. */
  readonly missing: number;
  readonly maxUnavailable: string;
  readonly bucket: TokenBucket;
  readonly inFlight: number;
  readonly breaker: BreakerStatus;
  readonly proven: boolean;
  /** When the last instance that became ready has proved to live or not. */
  readonly provenAt: number;
  readonly now: number;
}

export interface RolloutPlan {
  readonly starting: number;
  readonly unavailable: number;
  readonly idle: number;
  /** Undefined if only an event can change the plan. */
  readonly wakeAt: number | undefined;
}

export const staleOf = (counts: PoolCounts, updated: PoolCounts): number =>
  unclaimedOf(counts) - unclaimedOf(updated);

/**
 * Plans which old instances may retire now. Each needs a launch that can follow at once. Retires
 * ready instances while at most `maxUnavailable` of the wanted ones are unusable or unproven, and
 * others while at most that many are being launched. A revision whose starts fail gets one instance
 * after the pause, and the next once that one has proved to live.
 */
export const planRollout = (input: RolloutInput, policy: PoolPolicy): RolloutPlan => {
  const { counts, updated, ordered, missing, bucket, breaker, now } = input;
  if (staleOf(counts, updated) <= 0) return NOTHING;
  if (breaker.pausedUntil > now) return { ...NOTHING, wakeAt: breaker.pausedUntil };
  const tripped = breaker.failures >= policy.breaker.failures;
  if (tripped && input.provenAt > now) return { ...NOTHING, wakeAt: input.provenAt };
  const tokens = Math.floor(bucket.tokens);
  if (tokens < 1)
    return {
      ...NOTHING,
      wakeAt: now + Math.ceil(((1 - bucket.tokens) * 1_000) / policy.refill.perSecond),
    };
  const most = maxUnavailableOf(input.maxUnavailable, input.wanted);
  const slots = tripped ? 1 : input.inFlight;
  const room = atLeast0(Math.min(slots - counts.starting - ordered, tokens) - missing);
  const atOnce = atLeast0(Math.min(tripped ? 1 : most, slots, tokens) - ordered - updated.starting);
  const reliable = input.proven ? counts.idle : counts.idle - updated.idle;
  return {
    // A started instance passes its slot on; after failures it must first prove to live.
    starting: tripped ? 0 : Math.min(counts.starting - updated.starting, atOnce),
    unavailable: Math.min(counts.unavailable - updated.unavailable, atOnce, room),
    idle: Math.min(counts.idle - updated.idle, room, atLeast0(most - (input.wanted - reliable))),
    wakeAt: input.proven || updated.idle === 0 ? undefined : input.provenAt,
  };
};

const NOTHING: RolloutPlan = { starting: 0, unavailable: 0, idle: 0, wakeAt: undefined };

const atLeast0 = (value: number): number => Math.max(0, value);
