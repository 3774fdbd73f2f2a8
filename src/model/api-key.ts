import type { Revision } from './identifiers.ts';
import type { Role } from './tenant.ts';

/**
 * An API key as the store keeps it: never its secret, only the HMAC of it under the pepper, and a
 * hash for other clusters, sealed. Times in ms.
 */
export interface ApiKeyRecord {
  readonly keyId: string;
  readonly revision: Revision;
  /** `{namespace}/{shortName}`, unique. */
  readonly namespace: string;
  readonly shortName: string;
  readonly team: string;
  readonly user: string;
  readonly role: Role;
  readonly description: string;
  /** HMAC-SHA-256 of the secret, hex; of a promoted key's copy, of its verifier. */
  readonly hash: string;
  /** A hash for other clusters, sealed. */
  readonly verifier?: string;
  /** It counts on all worker clusters. */
  readonly global?: boolean;
  /** Fingerprint of the manager whose promoted key this is a copy of. */
  readonly promotedBy?: string;
  /** When that manager last said that the key is good, by the clock of the copy's cluster. */
  readonly confirmedAt?: number;
  /** The keyId of the key that made it; absent: a daemon did, or it is older than this field. */
  readonly createdBy?: string;
  /** For rules of the policy; so is each key that it makes. */
  readonly gated?: true;
  /** Users of the keys that it was made by, and that those were made by; absent: none is known. */
  readonly makers?: readonly string[];
  readonly issuedAt: number;
  readonly expiresAt: number;
}

const FOUR_WEEKS_MS = 28 * 24 * 60 * 60_000;

/** Made by hand, for so long that its end is easily forgotten: that is told beforehand. */
export const isLasting = ({
  issuedAt,
  expiresAt,
}: Pick<ApiKeyRecord, 'issuedAt' | 'expiresAt'>): boolean => expiresAt - issuedAt >= FOUR_WEEKS_MS;
