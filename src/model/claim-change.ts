import type { Claim } from './sandbox.ts';

/**
 * A change of a claim. `pausedAt` is the start of the pause. Null ends the pause and moves the
 * sandbox's end to `endsAt`.
 */
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
 * Minimum time in ms that a sandbox runs after it was paused at its end. Otherwise its end would
 * follow at once.
 */
export const LEAST_AWAKE_MS = 300_000;

/**
 * Returns the change that ends a claim's pause: the sandbox has as much time left as at the pause.
 */
export const resumption = ({ pausedAt, endsAt, autoPause }: Claim, now: number): ClaimChange => ({
  pausedAt: null,
  ...(endsAt === undefined || pausedAt === undefined
    ? {}
    : { endsAt: Math.max(endsAt + now - pausedAt, autoPause ? now + LEAST_AWAKE_MS : 0) }),
});
