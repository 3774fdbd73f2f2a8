import type { Claim, EndReason } from '../sandbox.ts';
import { sameTenant } from '../tenant.ts';

/** A running command delays the idle timeout, and so does a pause. */
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

export const isPausedAtEnd = (claim: Claim, now: number): boolean => {
  const { autoPause, endsAt, claimedAt, maxLifetimeMs } = claim;
  if (!autoPause || endsAt === undefined || now < endsAt) return false;
  return maxLifetimeMs === 0 || now < claimedAt + maxLifetimeMs;
};

/** The maximum lifetime, or the earlier fixed end, which a pause postpones. */
const lifeEndOf = ({ claimedAt, maxLifetimeMs, endsAt, pausedAt }: Claim): number =>
  Math.min(
    maxLifetimeMs > 0 ? claimedAt + maxLifetimeMs : Number.POSITIVE_INFINITY,
    endsAt === undefined || pausedAt !== undefined ? Number.POSITIVE_INFINITY : endsAt,
  );

/**
 * A record must show this before a claim of unknown outcome counts as ours. Tenant and time decide
 * only for records older than fingerprints: two replicas may claim the same instance for one user
 * in the same millisecond.
 */
export const sameClaim = (a: Claim | undefined, b: Claim | undefined): boolean => {
  if (a === undefined || b === undefined || !sameTenant(a.owner, b.owner)) return false;
  return a.mark || b.mark ? a.mark?.key === b.mark?.key : a.claimedAt === b.claimedAt;
};
