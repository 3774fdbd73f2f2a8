import type { Claim, EndReason } from '../sandbox.ts';
import { sameTenant } from '../tenant.ts';

/**
 * When the sandbox runs out, and why; undefined where it never does. A command under way holds off
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

/** Whether the claim is paused now, at the moment that it names, and does not end. */
export const isPausedAtEnd = (claim: Claim, now: number): boolean => {
  const { autoPause, endsAt, claimedAt, maxLifetimeMs } = claim;
  if (!autoPause || endsAt === undefined || now < endsAt) return false;
  return maxLifetimeMs === 0 || now < claimedAt + maxLifetimeMs;
};

/**
 * When the claim ends whatever the sandbox does: by its longest lifetime, or before, at the moment
 * that it names and that a pause puts off.
 */
const lifeEndOf = ({ claimedAt, maxLifetimeMs, endsAt, pausedAt }: Claim): number =>
  Math.min(
    maxLifetimeMs > 0 ? claimedAt + maxLifetimeMs : Number.POSITIVE_INFINITY,
    endsAt === undefined || pausedAt !== undefined ? Number.POSITIVE_INFINITY : endsAt,
  );

/**
 * Whether both are the same request's claim: what a record must show for a claim of unknown outcome
 * to be ours. Tenant and moment do not tell: two replicas may claim the same instance for one user
 * in the same millisecond. They do for records older than marks.
 */
export const sameClaim = (a: Claim | undefined, b: Claim | undefined): boolean => {
  if (a === undefined || b === undefined || !sameTenant(a.owner, b.owner)) return false;
  return a.mark || b.mark ? a.mark?.key === b.mark?.key : a.claimedAt === b.claimedAt;
};
