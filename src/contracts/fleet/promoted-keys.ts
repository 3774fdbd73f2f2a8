import type { Role } from '../../model/tenant.ts';
import type { ToldCopies, ToldSource, ToldVisit } from './told-records.ts';

/** Most keys of a manager that count on all its clusters. */
export const MOST_PROMOTED = 1_000;

/**
 * A promoted key as a manager sends it to its workers. It never has the secret, nor the manager's
 * pepper or a value derived from the pepper. Times in ms, by the manager's clock.
 */
export interface PromotedKey {
  readonly keyId: string;
  readonly shortName: string;
  readonly team: string;
  readonly user: string;
  readonly role: Role;
  readonly description: string;
  /** Hash of the secret (256 random bits), hex. */
  readonly verifier: string;
  readonly gated?: true;
  readonly makers?: readonly string[];
  readonly issuedAt: number;
  readonly expiresAt: number;
}

/** Publishes a manager's valid promoted keys to its links, by `keyId`. */
export type PromotedKeySource = ToldSource<PromotedKey>;

/** A manager's message about its promoted keys. */
export interface PromotedChange {
  readonly keys: readonly PromotedKey[];
  /** Ids of keys that are no longer promoted or valid. */
  readonly gone: readonly string[];
  /** The manager's time in ms. */
  readonly now: number;
}

/** A worker's copies of promoted keys. */
export type PromotedKeyCopies = ToldCopies<PromotedChange>;

/**
 * Applies the messages of one link about promoted keys. A change is in force when `take` resolves,
 * also for requests in progress. It is durable once the store accepts it; until then it is retried.
 * Once caught up, the copies are up to date. If the manager no longer knows the cluster, all its
 * keys become invalid, durably when `left` resolves.
 */
export type PromotedKeyVisit = ToldVisit<PromotedChange>;
