import type { Claim } from './sandbox.ts';

/** Null ends the pause and moves the sandbox's end to `endsAt`. */
export type ClaimChange =
  | { readonly idleTimeoutMs: number }
  | { readonly endsAt: number }
  | { readonly pausedAt: number | null; readonly endsAt?: number };

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

/**
 * A sandbox that was paused at its end runs at least this long; otherwise its end would follow at
 * once.
 */
export const LEAST_AWAKE_MS = 300_000;

/** The sandbox has as much time left as at the pause. */
export const resumption = ({ pausedAt, endsAt, autoPause }: Claim, now: number): ClaimChange => ({
  pausedAt: null,
  ...(endsAt === undefined || pausedAt === undefined
    ? {}
    : { endsAt: Math.max(endsAt + now - pausedAt, autoPause ? now + LEAST_AWAKE_MS : 0) }),
});
