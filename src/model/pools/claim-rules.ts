import type { Claim, EndReason } from '../sandbox.ts';
import { sameTenant } from '../tenant.ts';

/**
 * Expiry of the sandbox, with its reason; undefined if it never expires. A running command delays
 * the idle timeout, and so does a pause.
 */
export const expiryOf = (
  claim: Claim,
  activeAt: number,
  working: number,
): { readonly at: number; readonly reason: EndReason } | undefined => {
  const idleAt =
    claim.idleTimeoutMs > 0 && working === 0 && claim.pausedAt === undefined
      ? activeAt + claim.idleTimeoutMs
      : Number.POSITIVE_INFINITY;
  const lifeAt = lifeEndOf(claim);
  const at = Math.min(idleAt, lifeAt);
  if (at === Number.POSITIVE_INFINITY) return undefined;
  return { at, reason: lifeAt <= idleAt ? 'max-lifetime' : 'idle-timeout' };
};

/** Whether the claim pauses now, at its fixed end, instead of ending. */
export const isPausedAtEnd = (claim: Claim, now: number): boolean => {
  const { autoPause, endsAt, claimedAt, maxLifetimeMs } = claim;
  if (!autoPause || endsAt === undefined || now < endsAt) return false;
  return maxLifetimeMs === 0 || now < claimedAt + maxLifetimeMs;
};

/**
 * End of the claim independent of activity: its maximum lifetime, or its earlier fixed end, which a
 * pause postpones.
 */
const lifeEndOf = ({ claimedAt, maxLifetimeMs, endsAt, pausedAt }: Claim): number =>
  Math.min(
    maxLifetimeMs > 0 ? claimedAt + maxLifetimeMs : Number.POSITIVE_INFINITY,
    endsAt === undefined || pausedAt !== undefined ? Number.POSITIVE_INFINITY : endsAt,
  );

/**
 * Whether both claims are of the same request. A record must show this before a claim of unknown
 * outcome counts as ours. Tenant and time are not enough: two replicas may claim the same instance
 * for one user in the same millisecond. They decide only for records older than fingerprints.
 */
export const sameClaim = (a: Claim | undefined, b: Claim | undefined): boolean => {
  if (a === undefined || b === undefined || !sameTenant(a.owner, b.owner)) return false;
  return a.mark || b.mark ? a.mark?.key === b.mark?.key : a.claimedAt === b.claimedAt;
};
