import type {
  BreakerStatus,
  PoolCounts,
  PoolPhase,
  PoolRecord,
  ReplicaSemantics,
} from '../../model/pools/pool.ts';

/** How a pool fills: a token bucket, and how many may be starting at once. */
export interface RefillPolicy {
  readonly perSecond: number;
  readonly burst: number;
  readonly inFlight: number;
}

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
  readonly breaker: BreakerStatus;
  readonly now: number;
}

export interface ScalePlan {
  readonly launch: number;
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
      launch: 0,
      retire: Math.min(-missing, unclaimedOf(input.counts)),
      bucket,
      wakeAt: undefined,
    };
  if (missing === 0) return { launch: 0, retire: 0, bucket, wakeAt: undefined };
  const starting = input.counts.starting + input.ordered;
  const launchable = missing - input.counts.retiring;
  const { failures, pausedUntil } = input.breaker;
  if (pausedUntil > input.now) return { launch: 0, retire: 0, bucket, wakeAt: pausedUntil };
  const room =
    failures >= policy.breaker.failures ? 1 - starting : policy.refill.inFlight - starting;
  const launch = Math.max(0, Math.min(launchable, room, Math.floor(bucket.tokens)));
  const waitsForTokens = launch < Math.min(launchable, room);
  return {
    launch,
    retire: 0,
    bucket: { tokens: bucket.tokens - launch, at: bucket.at },
    wakeAt: waitsForTokens
      ? input.now +
        Math.ceil(((1 - ((bucket.tokens - launch) % 1)) * 1_000) / policy.refill.perSecond)
      : undefined,
  };
};

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
  reason: string,
  now: number,
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
