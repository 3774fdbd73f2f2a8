import type { Role } from '../../model/tenant.ts';
import type { ToldCopies, ToldSource, ToldVisit } from './told-records.ts';

export const MOST_PROMOTED = 1_000;

/**
 * Never has the secret, nor the manager's pepper or a value derived from it. Times in ms, by the
 * manager's clock.
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

/** Valid keys only, by `keyId`. */
export type PromotedKeySource = ToldSource<PromotedKey>;

export interface PromotedChange {
  readonly keys: readonly PromotedKey[];
  readonly gone: readonly string[];
  readonly now: number;
}

export type PromotedKeyCopies = ToldCopies<PromotedChange>;

/**
 * A change is in force when `take` resolves, also for requests in progress, and durable once the
 * store accepts it. If the manager no longer knows the cluster, all its keys become invalid,
 * durably when `left` resolves.
 */
export type PromotedKeyVisit = ToldVisit<PromotedChange>;
