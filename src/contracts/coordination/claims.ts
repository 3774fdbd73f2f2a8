import type { InstanceId } from '../../model/identifiers.ts';
import type { RequestFingerprint } from '../../model/request-fingerprint.ts';
import type { Tenant } from '../../model/tenant.ts';
import type { RequestOwner, OpenedRequest } from './requests.ts';

/** Claims that wait for one pool at one time, on all replicas. */
export const MAX_WAITING_OF_POOL = 256;

/** A pool, and whose it is. */
export interface WaitedPool {
  readonly uid: string;
  readonly owner: Tenant;
}

/** A claim's place in the order of those who wait for a pool. */
export interface WaitingPlace {
  readonly pool: WaitedPool;
  readonly id: string;
}

/** An instance that is tried for a claim, of its pool's owner or of another user of the team. */
export interface ClaimEntry {
  readonly pool: WaitedPool;
  /** Who claims, and on whose quota; absent: the pool's owner. */
  readonly owner?: Tenant;
  readonly instance: InstanceId;
  /** The most sandboxes that who claims may hold. */
  readonly limit: number;
  /**
   * How many of the pool this replica sees idle: this one, and those that no other claim of it
   * tries for. At least 1.
   */
  readonly idle: number;
  /** Place of a claim that waits; without one it comes after all who do. */
  readonly place?: WaitingPlace;
  /** The attempt of the claim: see QuotaEntry. */
  readonly attempt?: string;
  /**
   * An instance that was lost to another claim: the attempt's reservation of it is given up for
   * this one.
   */
  readonly from?: InstanceId;
  /**
   * Fingerprint of the request, where it carries an Idempotency-Key: its entry names this instance
   * from then on.
   */
  readonly request?: RequestFingerprint;
  /** For whom the request is opened first, in the same step; without it it is open. */
  readonly open?: RequestOwner;
  /**
   * Set once what an earlier request of the key may have claimed was read uncached, after
   * `look-first` was answered.
   */
  readonly looked?: boolean;
}

/**
 * `full`: the owner's quota is used up. `not-its-turn`: as many wait before it as are idle, or it
 * waits and another replica tries for this instance. `opened`: nothing was done but to open the
 * request, which is not new, or new with an instance that is to be looked at first. `look-first`:
 * requests were lost a moment ago, so that an earlier one of the key may have claimed what no
 * mirror shows yet; nothing was done but to open the request and withdraw `from`.
 */
export type Admission =
  | 'admitted'
  | 'full'
  | 'not-its-turn'
  | 'look-first'
  | { readonly opened: OpenedRequest };

/**
 * Claims, first come first served over all replicas. The one of rank r tries for the r-th idle
 * instance, so nobody waits for whoever is before; one that doesn't wait counts as last. Skipped is
 * who waits on a replica that is dead, or that lets what others see idle lie, each for
 * 3 s; it keeps its place for when it comes back.
 */
export interface Claims {
  /**
   * Takes the last place of the pool's order. Refuses with TOO_MANY_WAITING where there are
   * MAX_WAITING_OF_POOL.
   */
  joinWaiting(pool: WaitedPool): Promise<WaitingPlace>;
  /** May be repeated. What it could not tell is known to all after 3 s. */
  leaveWaiting(place: WaitingPlace): Promise<void>;
  /** Counts how many wait for the pool, on all replicas. */
  waiting(pool: WaitedPool): Promise<number>;
  /**
   * All that a claim must have before it is written, in one step: the request is opened; `from` is
   * withdrawn; then, if it is its turn, a seat of the owner's quota is reserved under the
   * instance's name, and its place given up. Without its turn it has its place again. Rejects with
   * `unavailable` as `reserve` does, and where `request` is no longer this replica's to carry out.
   */
  admitClaim(entry: ClaimEntry): Promise<Admission>;
}
