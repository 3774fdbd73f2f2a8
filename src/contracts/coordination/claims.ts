import type { InstanceId } from '../../model/identifiers.ts';
import type { RequestFingerprint } from '../../model/request-fingerprint.ts';
import type { Tenant } from '../../model/tenant.ts';
import type { RequestOwner, OpenedRequest } from './requests.ts';

/** Most claims that wait for one pool at a time, over all replicas. */
export const MAX_WAITING_OF_POOL = 256;

/** A pool and its owner. */
export interface WaitedPool {
  readonly uid: string;
  readonly owner: Tenant;
}

/** Position of a claim in the queue of a pool. */
export interface WaitingPlace {
  readonly pool: WaitedPool;
  readonly id: string;
}

/** A claim's attempt at an instance, by the pool's owner or another user of the team. */
export interface ClaimEntry {
  readonly pool: WaitedPool;
  /** The claimant, whose quota is charged. Defaults to the pool's owner. */
  readonly owner?: Tenant;
  readonly instance: InstanceId;
  /** The claimant's maximum of sandboxes. */
  readonly limit: number;
  /**
   * Idle instances of the pool that this replica sees, without those that its other claims try for.
   * At least 1, for this instance.
   */
  readonly idle: number;
  /** Position of a waiting claim. A claim without a position comes last. */
  readonly place?: WaitingPlace;
  /** The claim's attempt: see QuotaEntry. */
  readonly attempt?: string;
  /** An instance that another claim won. The attempt's reservation of it moves to this instance. */
  readonly from?: InstanceId;
  /**
   * Fingerprint of a request with an Idempotency-Key. Its entry names this instance from now on.
   */
  readonly request?: RequestFingerprint;
  /** Owner for whom the step first opens the request; absent if the request is already open. */
  readonly open?: RequestOwner;
  /**
   * Set after `look-first`, once the caller has read uncached what an earlier request of the key
   * may have claimed.
   */
  readonly looked?: boolean;
}

/**
 * `full`: the owner's quota is used up. `not-its-turn`: at least as many claims wait ahead as
 * instances are idle, or the claim waits and another replica tries for this instance. `opened`: the
 * step only opened the request, which is not new, or is new with an instance to check first.
 * `look-first`: requests were lost recently, so an earlier request of the key may have claimed an
 * instance that mirrors don't show yet. The step only opened the request and withdrew `from`.
 */
export type Admission =
  | 'admitted'
  | 'full'
  | 'not-its-turn'
  | 'look-first'
  | { readonly opened: OpenedRequest };

/**
 * Claims, first come first served over all replicas. The claim of rank r tries for the r-th idle
 * instance, so no claim waits for those ahead of it. A claim that does not wait ranks last. The
 * queue skips, for 3 s each, claims on a dead replica, and claims on a replica that leaves idle
 * instances unused. A skipped claim keeps its position.
 */
export interface Claims {
  /**
   * Takes the last position of the pool's queue. Refuses with TOO_MANY_WAITING if the queue has
   * MAX_WAITING_OF_POOL claims.
   */
  joinWaiting(pool: WaitedPool): Promise<WaitingPlace>;
  /** Leaves the queue. Idempotent. If the call fails, the queue drops the claim after 3 s. */
  leaveWaiting(place: WaitingPlace): Promise<void>;
  /** Number of claims that wait for the pool, over all replicas. */
  waiting(pool: WaitedPool): Promise<number>;
  /**
   * Does all that a claim needs before it is written, in one step. Opens the request and withdraws
   * `from`. If it is the claim's turn, reserves one sandbox of the owner's quota under the
   * instance's name, and gives up the position. Otherwise the claim keeps its position, or gets it
   * back. Rejects with `unavailable` like `reserve`, and if `request` no longer belongs to this
   * replica.
   */
  admitClaim(entry: ClaimEntry): Promise<Admission>;
}
