import type { Revision } from './identifiers.ts';
import type { Role } from './tenant.ts';

/** Holds only the HMAC of the secret under the pepper. Times in ms. */
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
  readonly verifier?: string;
  readonly global?: boolean;
  readonly promotedBy?: string;
  /** The manager's last confirmation, by the clock of the copy's cluster. */
  readonly confirmedAt?: number;
  /** Absent if a daemon made the key, or if the key is older than this field. */
  readonly createdBy?: string;
  /** Keys that a gated key makes are gated too. */
  readonly gated?: true;
  /** Users of all keys in its chain of makers. */
  readonly makers?: readonly string[];
  readonly issuedAt: number;
  readonly expiresAt: number;
}

const FOUR_WEEKS_MS = 28 * 24 * 60 * 60_000;

/** Its owner may forget the expiry, so the daemon warns before it. */
export const isLasting = ({
  issuedAt,
  expiresAt,
}: Pick<ApiKeyRecord, 'issuedAt' | 'expiresAt'>): boolean => expiresAt - issuedAt >= FOUR_WEEKS_MS;
