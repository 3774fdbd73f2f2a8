import type { InstanceId } from '../../model/identifiers.ts';
import type { RequestFingerprint } from '../../model/request-fingerprint.ts';
import type { Tenant } from '../../model/tenant.ts';
import type { RequestOwner, OpenedRequest } from './requests.ts';

export const MAX_WAITING_OF_POOL = 256;

export interface WaitedPool {
  readonly uid: string;
  readonly owner: Tenant;
}

export interface WaitingPlace {
  readonly pool: WaitedPool;
  readonly id: string;
}

export interface ClaimEntry {
  readonly pool: WaitedPool;
  /** The claimant, whose quota is charged. Defaults to the pool's owner. */
  readonly owner?: Tenant;
  readonly instance: InstanceId;
  /** The claimant's maximum of sandboxes. */
  readonly limit: number;
  /**
   * Idle instances in the view of this replica, without those that its other claims try for; at
   * least 1.
   */
  readonly idle: number;
  readonly place?: WaitingPlace;
  /** See QuotaEntry. */
  readonly attempt?: string;
  /** Won by another claim. The attempt's reservation of it moves to this instance. */
  readonly from?: InstanceId;
  /** A request with an Idempotency-Key. Its entry names this instance from now on. */
  readonly request?: RequestFingerprint;
  /** The step first opens the request for this owner; absent if it is already open. */
  readonly open?: RequestOwner;
  /**
   * Set after `look-first`, once the caller has read uncached what an earlier request of the key
   * may have claimed.
   */
  readonly looked?: boolean;
}

/**
 * `not-its-turn`: as many claims wait ahead as instances are idle, or another replica tries for
 * this instance. `opened`: the step only opened the request, which is not new, or has an instance
 * to check first. `look-first`: requests were lost recently, so an earlier one of the key may have
 * claimed an instance that mirrors don't show yet; the step only opened the request and withdrew
 * `from`.
 */
export type Admission =
  | 'admitted'
  | 'full'
  | 'not-its-turn'
  | 'look-first'
  | { readonly opened: OpenedRequest };

/**
 * First come first served over all replicas: the claim of rank r tries for the r-th idle instance.
 * Claims on a replica that is dead, or leaves idle instances unused, are skipped for 3 s each, and
 * keep their positions.
 */
export interface Claims {
  /** Refuses with TOO_MANY_WAITING if the queue has MAX_WAITING_OF_POOL claims. */
  joinWaiting(pool: WaitedPool): Promise<WaitingPlace>;
  /** Idempotent. If the call fails, the queue drops the claim after 3 s. */
  leaveWaiting(place: WaitingPlace): Promise<void>;
  waiting(pool: WaitedPool): Promise<number>;
  /**
   * In one step, opens the request, withdraws `from`, and if it is the claim's turn, reserves one
   * sandbox under the instance's name and gives up the position. Rejects with `unavailable` like
   * `reserve`, and if `request` no longer belongs to this replica.
   */
  admitClaim(entry: ClaimEntry): Promise<Admission>;
}
