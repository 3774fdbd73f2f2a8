import type { Claim } from './sandbox.ts';

/**
 * Says what to change of a claim. `pausedAt`: since when it is paused; null ends that, and puts the
 * moment at which the sandbox ends where `endsAt` says.
 */
export type ClaimChange =
  | { readonly idleTimeoutMs: number }
  | { readonly endsAt: number }
  | { readonly pausedAt: number | null; readonly endsAt?: number };

/** Returns the claim as it is after the change. */
export const changedClaim = (claim: Claim, change: ClaimChange): Claim => {
  if (!('pausedAt' in change)) return { ...claim, ...change };
  const { pausedAt: _before, ...rest } = claim;
  const { pausedAt, endsAt } = change;
  return {
    ...rest,
    ...(endsAt === undefined ? {} : { endsAt }),
    ...(pausedAt === null ? {} : { pausedAt }),
  };
};

/** Least time that one has that is paused at its end, once it goes on: else it would be at once. */
export const LEAST_AWAKE_MS = 300_000;

/**
 * Returns what ends the pause of a claim: the time that it had left until its end is what it has
 * left again.
 */
export const resumption = ({ pausedAt, endsAt, autoPause }: Claim, now: number): ClaimChange => ({
  pausedAt: null,
  ...(endsAt === undefined || pausedAt === undefined
    ? {}
    : { endsAt: Math.max(endsAt + now - pausedAt, autoPause ? now + LEAST_AWAKE_MS : 0) }),
});
