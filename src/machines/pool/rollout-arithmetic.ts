import { maxUnavailableOf } from '../../model/pools/max-unavailable.ts';
import type { BreakerStatus, PoolCounts } from '../../model/pools/pool.ts';
import { unclaimedOf, type PoolPolicy, type TokenBucket } from './arithmetic.ts';

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
  const slots = tripped ? 1 : policy.refill.inFlight;
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
