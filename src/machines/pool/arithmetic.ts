import type { InstanceDefinition } from '../../model/templates/template.ts';
import type {
  BreakerStatus,
  PoolCounts,
  PoolPhase,
  PoolRecord,
  ReplicaSemantics,
} from '../../model/pools/pool.ts';
import { maxUnavailableOf } from '../../model/pools/max-unavailable.ts';

/** How a pool fills: a token bucket, and how many may be starting at once. */
export interface RefillPolicy {
  readonly perSecond: number;
  readonly burst: number;
  readonly inFlight: number;
  /** Bounds the instances of all pools that become ready at once. If absent, nothing does. */
  readonly places?: PlacesPolicy;
}

/**
 * Pools of one machine share its processors, so that an instance with a readiness probe needs a
 * place from its launch until it is ready or gone. `first` and `most` count places: at first, and
 * after many instances became ready in time.
 */
export interface PlacesPolicy {
  readonly first: number;
  readonly most: number;
}

/** Returns whether each instance of the definition needs a place to become ready. */
export const needsPlace = (
  { containers, endpoints = {} }: InstanceDefinition,
  { places }: RefillPolicy,
): boolean =>
  places !== undefined &&
  [...containers, ...Object.values(endpoints)].some(({ readinessProbe }) => readinessProbe);

/**
 * Returns how many instances may be starting at once after one of them failed: half of those that
 * start now. Instances that start together share the processors, so that fewer become ready in
 * time. `starting` is at least 0; the result is at least 1.
 */
export const inFlightAfterFailure = (inFlight: number, starting: number): number =>
  Math.max(1, Math.min(inFlight, Math.floor(starting / 2)));

/**
 * After `failures` start failures in a row nothing is started for `firstPauseMs`, doubling to
 * `maxPauseMs`.
 */
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

/** Counts what `replicas` counts, ordered launches included. */
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
  /** Launches asked for whose instances have not yet appeared. */
  readonly ordered: number;
  readonly bucket: TokenBucket;
  /** How many may be starting at once, unless the breaker allows only one. */
  readonly inFlight: number;
  /** How many the machine has a place for. If absent, they need none. */
  readonly places?: number;
  readonly breaker: BreakerStatus;
  readonly now: number;
}

export interface ScalePlan {
  readonly launch: number;
  /** Whether more would be launched if there were places. */
  readonly lacksPlaces: boolean;
  readonly retire: number;
  readonly bucket: TokenBucket;
  /** When to plan again if nothing else happens; undefined: only an event can change the plan. */
  readonly wakeAt: number | undefined;
}

/**
 * Plans how many to launch and how many of the unclaimed to retire, so that what is present comes
 * to `replicas` and never goes above it, those counted that are being retired. While the breaker
 * pauses nothing is launched; after its pause one is, until that one has started.
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

/** `isRefused`: nothing was started, and whoever refused it may take it the next time. */
export interface StartFailure {
  readonly reason: string;
  readonly now: number;
  readonly isRefused?: true;
}

/**
 * The breaker after one more start failure. Failures while it pauses are of starts from before it:
 * they neither count nor stretch it. After a refusal, which costs little, the pause stays short.
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

/** The breaker after a launch for which there was no place: it pauses, and counts no failure. */
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
/** So that a pool is full within ten seconds of when its cluster takes its Pods again. */
const MOST_PAUSE_OF_REFUSED_MS = 8_000;

export interface PhaseInput {
  readonly record: Pick<PoolRecord, 'replicas' | 'deleting'>;
  readonly counts: PoolCounts;
  readonly ordered: number;
  readonly breaker: BreakerStatus;
  /** It has once had all that it should. */
  readonly filledOnce: boolean;
  /** Unclaimed instances of older revisions are being replaced, or should be. */
  readonly rolling: boolean;
}

/**
 * The pool's phase on the wire. A tripped breaker that keeps it from having what it should shows
 * Degraded while something is usable, Failed while nothing is.
 */
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
 * `current`: all that is unclaimed has the pool's revision; `blocked`: that revision can't start.
 */
export type RolloutState = 'current' | 'progressing' | 'blocked';

export interface RolloutInput {
  /** Unclaimed instances that there should be. */
  readonly wanted: number;
  readonly counts: PoolCounts;
  /** Counts of the instances alone that have the pool's revision. */
  readonly updated: PoolCounts;
  /** Launches asked for whose instances have not yet appeared; all of the pool's revision. */
  readonly ordered: number;
  /** Says what is wanted and not even ordered. */
  readonly missing: number;
  readonly maxUnavailable: string;
  /** Refilled by now. */
  readonly bucket: TokenBucket;
  /** How many may be starting at once, unless the breaker allows only one. */
  readonly inFlight: number;
  readonly breaker: BreakerStatus;
  /** Instances of the pool's revision are known to live. */
  readonly proven: boolean;
  /**
   * By then it is known whether the last one that became ready, after failures or while `proven` is
   * not so, lives.
   */
  readonly provenAt: number;
  readonly now: number;
}

/** How many of an older revision may be retired at once, by how they stand. */
export interface RolloutPlan {
  readonly starting: number;
  readonly unavailable: number;
  readonly idle: number;
  /** When to plan again if nothing else happens; undefined: only an event can change the plan. */
  readonly wakeAt: number | undefined;
}

export const staleOf = (counts: PoolCounts, updated: PoolCounts): number =>
  unclaimedOf(counts) - unclaimedOf(updated);

/**
 * Plans what a rollout may take away now. Nothing goes that a launch can't follow at once: none
 * while the breaker pauses, and as many as there are tokens and room for starts. Ready ones go as
 * long as no more than `maxUnavailable` of those wanted are missing, starting or unavailable, or of
 * a revision that has not shown yet that it lives; what isn't ready anyhow goes as long as no more
 * than so many are being launched. A revision whose starts failed in a row gets one instance after
 * the pause, where none is missing, and no other before that one has shown whether it lives.
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
    // One that starts gives its slot to the next; after failures it is left to show whether it can.
    starting: tripped ? 0 : Math.min(counts.starting - updated.starting, atOnce),
    unavailable: Math.min(counts.unavailable - updated.unavailable, atOnce, room),
    idle: Math.min(counts.idle - updated.idle, room, atLeast0(most - (input.wanted - reliable))),
    wakeAt: input.proven || updated.idle === 0 ? undefined : input.provenAt,
  };
};

const NOTHING: RolloutPlan = { starting: 0, unavailable: 0, idle: 0, wakeAt: undefined };

const atLeast0 = (value: number): number => Math.max(0, value);
