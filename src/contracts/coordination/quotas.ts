import type { Revision } from '../../model/identifiers.ts';
import type { QuotaAmounts, QuotaResource } from '../../model/pools/quota.ts';
import type { Tenant } from '../../model/tenant.ts';

export interface QuotaEntry {
  readonly name: string;
  readonly amount: number;
  readonly limit: number;
  /** Each attempt has one reservation of a name. */
  readonly attempt?: string;
}

export interface Confirmation {
  readonly name: string;
  readonly amount: number;
  readonly revision: Revision;
  readonly attempt?: string;
}

export interface ReservedName {
  readonly name: string;
  readonly attempt?: string | undefined;
}

/** Time in ms after a reservation in which its write needs no `stillReserved`. */
export const RESERVATION_MS = 1_000;

/** Time in ms after which a sent write has landed, or never will. */
export const WRITE_MS = 2_000;

export interface Reservation {
  readonly name: string;
  /** Changes with each change of the name's part. Opaque. */
  readonly version: string;
}

export interface UsagePart extends Reservation {
  readonly amount: number;
  /** A write may be in progress. */
  readonly isReserved: boolean;
}

/** `revision` is set if the record's revisions can be compared. */
export interface ReconciledReservation extends Reservation {
  readonly amount: number;
  readonly revision?: Revision;
}

/**
 * Usage is a set of names, so that each change may be repeated. A name counts with the amount of
 * its last record, or with its largest reservation if that is more. Only an attempt itself
 * withdraws its reservation. A lost set is rebuilt from the records, once all writes in progress
 * have landed; until then, calls reject with `unavailable`.
 */
export interface Quotas {
  /**
   * A repeated call replaces the attempt's own reservation. Returns false and changes nothing if
   * usage would exceed the limit.
   */
  reserve(tenant: Tenant, resource: QuotaResource, entry: QuotaEntry): Promise<boolean>;
  /** Leaves other reservations and the record's amount. Idempotent. */
  withdraw(tenant: Tenant, resource: QuotaResource, reserved: ReservedName): Promise<void>;
  /**
   * The written amount replaces the attempt's reservation, unless a later revision was confirmed.
   * Does nothing for a name that does not count. May be repeated, in any order.
   */
  confirm(tenant: Tenant, resource: QuotaResource, confirmation: Confirmation): Promise<void>;
  /**
   * Without an attempt, any reservation of this replica. Called before a write that comes more than
   * a second after the reservation.
   */
  stillReserved(tenant: Tenant, resource: QuotaResource, reserved: ReservedName): Promise<boolean>;
  /** For a record that is gone or about to be; includes all reservations. Idempotent. */
  release(tenant: Tenant, resource: QuotaResource, name: string): Promise<void>;
  /**
   * Includes reservations. Rejects with `unavailable` if usage is unknown, and starts to rebuild
   * it.
   */
  used(tenant: Tenant): Promise<QuotaAmounts>;
  /** Takes some seconds for a new tenant. Rejects with `unavailable` if it takes too long. */
  whenKnown(tenant: Tenant): Promise<void>;
  /** Rebuilds unknown usage in the background. Never throws. */
  expectUse(tenant: Tenant): void;
  /**
   * For a record that was read at start, regardless of the limit. Does nothing if usage outlives
   * the replica.
   */
  restore(
    tenant: Tenant,
    resource: QuotaResource,
    part: { readonly name: string; readonly amount: number },
  ): Promise<void>;
  /** Oldest first, at most 100. Empty if usage belongs to the replica. */
  unreconciled(
    tenant: Tenant,
    resource: QuotaResource,
    olderThanMs: number,
  ): Promise<readonly Reservation[]>;
  /**
   * Parts that change during the call may be missing or appear twice. Empty if usage belongs to the
   * replica.
   */
  parts(tenant: Tenant, resource: QuotaResource): Promise<readonly UsagePart[]>;
  /**
   * Sets each name to its record's `amount`, without open reservations. Skips names that were
   * reserved or confirmed again since `version`; '' means a name that does not count. At most 100.
   * Idempotent.
   */
  reconcile(
    tenant: Tenant,
    resource: QuotaResource,
    settled: readonly ReconciledReservation[],
  ): Promise<void>;
}
