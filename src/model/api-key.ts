import type { Revision } from './identifiers.ts';
import type { Role } from './tenant.ts';

/**
 * A stored API key. It never has the secret, only its HMAC under the pepper, and a sealed hash for
 * other clusters. Times in ms.
 */
export interface ApiKeyRecord {
  readonly keyId: string;
  readonly revision: Revision;
  /** `{namespace}/{shortName}` is unique. */
  readonly namespace: string;
  readonly shortName: string;
  readonly team: string;
  readonly user: string;
  readonly role: Role;
  readonly description: string;
  /** HMAC-SHA-256 of the secret, hex; for a copy of a promoted key, of its verifier. */
  readonly hash: string;
  /** Sealed hash for other clusters. */
  readonly verifier?: string;
  /** Valid on all worker clusters. */
  readonly global?: boolean;
  /** Fingerprint of the manager that promoted the key, if this is a copy. */
  readonly promotedBy?: string;
  /** Time of the manager's last confirmation of the key, by the clock of the copy's cluster. */
  readonly confirmedAt?: number;
  /** KeyId of its maker; absent if a daemon made it, or if the key is older than this field. */
  readonly createdBy?: string;
  /** For rules of the policy. Keys that it makes are gated too. */
  readonly gated?: true;
  /** Users of all keys in its chain of makers; absent if none is known. */
  readonly makers?: readonly string[];
  readonly issuedAt: number;
  readonly expiresAt: number;
}

const FOUR_WEEKS_MS = 28 * 24 * 60 * 60_000;

/** Lives so long that its owner may forget the expiry, so the daemon warns before it. */
export const isLasting = ({
  issuedAt,
  expiresAt,
}: Pick<ApiKeyRecord, 'issuedAt' | 'expiresAt'>): boolean => expiresAt - issuedAt >= FOUR_WEEKS_MS;
