import type { Role } from '../../model/tenant.ts';
import type { ToldCopies, ToldSource, ToldVisit } from './told-records.ts';

/** The most keys of a manager that count on all its clusters. */
export const MOST_PROMOTED = 1_000;

/**
 * A promoted key as a manager tells its workers of it: never its secret, nor the manager's pepper
 * or anything that was made with it. Times in ms, by the manager's clock.
 */
export interface PromotedKey {
  readonly keyId: string;
  readonly shortName: string;
  readonly team: string;
  readonly user: string;
  readonly role: Role;
  readonly description: string;
  /** Hash of the secret, of 256 random bits, hex. */
  readonly verifier: string;
  readonly gated?: true;
  readonly makers?: readonly string[];
  readonly issuedAt: number;
  readonly expiresAt: number;
}

/** Tells the links of a manager of its promoted keys that are good, by their `keyId`. */
export type PromotedKeySource = ToldSource<PromotedKey>;

/** Says what a manager has to tell of its promoted keys. */
export interface PromotedChange {
  readonly keys: readonly PromotedKey[];
  /** Ids of keys that are not promoted, or not good any more. */
  readonly gone: readonly string[];
  /** The manager's time. */
  readonly now: number;
}

/** Keeps copies of promoted keys at a worker. */
export type PromotedKeyCopies = ToldCopies<PromotedChange>;

/**
 * Takes in what one link tells of promoted keys. What it took holds for requests under way too,
 * when `take` resolves, and durably as soon as the store takes it: until then it is tried again.
 * Once caught up, its copies are up to date. Where the manager does not know the cluster any more,
 * none of its keys is good, durably when `left` resolves.
 */
export type PromotedKeyVisit = ToldVisit<PromotedChange>;
