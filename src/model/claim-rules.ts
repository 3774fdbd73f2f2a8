import type { Claim, EndReason } from './sandbox.ts';
import { sameTenant } from './tenant.ts';

/** When the sandbox runs out, and why; undefined where it never does. A command under way holds off the idle timeout. */
export const expiryOf = (claim: Claim, activeAt: number, working: number): { readonly at: number; readonly reason: EndReason } | undefined => {
  const idleAt = claim.idleTimeoutMs > 0 && working === 0 ? activeAt + claim.idleTimeoutMs : Number.POSITIVE_INFINITY;
  const lifeAt = claim.maxLifetimeMs > 0 ? claim.claimedAt + claim.maxLifetimeMs : Number.POSITIVE_INFINITY;
  const at = Math.min(idleAt, lifeAt);
  if (at === Number.POSITIVE_INFINITY) return undefined;
  return { at, reason: lifeAt <= idleAt ? 'max-lifetime' : 'idle-timeout' };
};

/** The same tenant's same claim: what a record must show for a claim of unknown outcome to be ours. */
export const sameClaim = (a: Claim | undefined, b: Claim | undefined): boolean =>
  a !== undefined && b !== undefined && a.claimedAt === b.claimedAt && sameTenant(a.owner, b.owner);
