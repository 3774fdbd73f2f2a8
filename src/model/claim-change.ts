import type { Claim } from './sandbox.ts';

/** Says what to change of a claim. `pausedAt`: since when it is paused; null ends that. */
export type ClaimChange = { readonly idleTimeoutMs: number } | { readonly pausedAt: number | null };

/** Returns the claim as it is after the change. */
export const changedClaim = (claim: Claim, change: ClaimChange): Claim => {
  if ('idleTimeoutMs' in change) return { ...claim, idleTimeoutMs: change.idleTimeoutMs };
  const { pausedAt: _before, ...rest } = claim;
  return change.pausedAt === null ? rest : { ...rest, pausedAt: change.pausedAt };
};
