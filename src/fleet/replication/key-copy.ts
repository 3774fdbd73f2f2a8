import type { PromotedKey } from '../../contracts/fleet/promoted-keys.ts';
import type { ApiKeyRecord } from '../../model/api-key.ts';
import { promotedHashOf } from '../../services/keys/mint-api-key.ts';

interface KeyCopyTerms {
  readonly manager: string;
  readonly pepper: Buffer;
  /** The namespace of a team, on this cluster. */
  readonly namespaceOf: (team: string) => string;
  readonly now: number;
  /** How far the clock of this cluster is ahead of the manager's, in ms. */
  readonly ahead: number;
}

/** Clocks that are read on the way differ by less; those of the two ends may by any amount. */
const SAME_MS = 5_000;

/**
 * Makes the copy of a manager's promoted key as this cluster keeps it. Times are those of this
 * cluster's clock, whatever the manager's says.
 */
export const keyCopy = (
  { verifier, gated, makers, ...key }: PromotedKey,
  { manager, pepper, namespaceOf, now, ahead }: KeyCopyTerms,
): Omit<ApiKeyRecord, 'revision'> => ({
  ...key,
  namespace: namespaceOf(key.team),
  hash: promotedHashOf(verifier, pepper),
  global: true,
  promotedBy: manager,
  confirmedAt: now,
  ...(gated ? { gated } : {}),
  ...(makers ? { makers } : {}),
  issuedAt: Math.round(key.issuedAt + ahead),
  expiresAt: Math.round(key.expiresAt + ahead),
});

/** Compares all but its name, which may be another one here. */
export const isSameCopy = (known: ApiKeyRecord, wanted: Omit<ApiKeyRecord, 'revision'>): boolean =>
  Math.abs(known.expiresAt - wanted.expiresAt) < SAME_MS &&
  known.hash === wanted.hash &&
  known.description === wanted.description;
