import type { Revision } from '../../model/identifiers.ts';
import type { QuotaAmounts, QuotaResource } from '../../model/pools/quota.ts';
import type { Tenant } from '../../model/tenant.ts';

export interface QuotaEntry {
  readonly name: string;
  readonly amount: number;
  readonly limit: number;
  /**
   * Distinguishes this replica's attempts at one name. Each attempt has one reservation of a name.
   */
  readonly attempt?: string;
}

/** Content of a record from a revision on. */
export interface Confirmation {
  readonly name: string;
  readonly amount: number;
  readonly revision: Revision;
  /** The attempt whose reservation allowed the write, if any. */
  readonly attempt?: string;
}

/** All reservations of a name, or the reservation of one attempt. */
export interface ReservedName {
  readonly name: string;
  readonly attempt?: string | undefined;
}

/** Time in ms after a reservation in which its write needs no `stillReserved`. */
export const RESERVATION_MS = 1_000;

/** Time in ms after which a write that was sent has landed, or never will. */
export const WRITE_MS = 2_000;

/** A part of a tenant's usage that is not yet confirmed by a record. */
export interface Reservation {
  readonly name: string;
  /** Changes with each change of the name's part. Opaque. */
  readonly version: string;
}

/** Share of a name in a tenant's usage. */
export interface UsagePart extends Reservation {
  readonly amount: number;
  /** An attempt has an open reservation of the name: a write may be in progress. */
  readonly isReserved: boolean;
}

/** Content of the name's record. `revision` is set if the record's revisions can be compared. */
export interface ReconciledReservation extends Reservation {
  readonly amount: number;
  readonly revision?: Revision;
}

/**
 * Usage as a set of names, so that each change may be repeated. A name counts with the amount of
 * its last record, or with its largest reservation if that is more. Reservations of one name by
 * several attempts don't add up, and only an attempt itself withdraws its reservation. If a
 * tenant's set is lost or outdated, it is rebuilt from the records, once all writes in progress
 * have landed. Until then, calls reject with `unavailable`.
 */
export interface Quotas {
  /**
   * Reserves `amount` under `name`, unless the tenant's usage would exceed the limit. A repeated
   * call replaces the attempt's own reservation. Returns false and changes nothing if usage would
   * exceed the limit.
   */
  reserve(tenant: Tenant, resource: QuotaResource, entry: QuotaEntry): Promise<boolean>;
  /**
   * Withdraws the attempt's reservation of the name. Leaves other reservations and the record's
   * amount. Idempotent.
   */
  withdraw(tenant: Tenant, resource: QuotaResource, reserved: ReservedName): Promise<void>;
  /**
   * A write has landed: its amount replaces the attempt's reservation, unless a later revision was
   * confirmed. Does nothing for a name that does not count. May be repeated, in any order.
   */
  confirm(tenant: Tenant, resource: QuotaResource, confirmation: Confirmation): Promise<void>;
  /**
   * Whether the attempt's reservation counts at this moment; without an attempt, any reservation of
   * this replica. Called before a write that comes more than a second after the reservation.
   */
  stillReserved(tenant: Tenant, resource: QuotaResource, reserved: ReservedName): Promise<boolean>;
  /**
   * Removes the name's part, including all reservations, because its record is gone or about to be.
   * Idempotent.
   */
  release(tenant: Tenant, resource: QuotaResource, name: string): Promise<void>;
  /**
   * Current usage against the tenant's limits, including reservations. Rejects with `unavailable`
   * if usage is unknown, and starts to rebuild it.
   */
  used(tenant: Tenant): Promise<QuotaAmounts>;
  /**
   * Resolves once usage is known, which takes some seconds for a new tenant. Rejects with
   * `unavailable` if it takes too long.
   */
  whenKnown(tenant: Tenant): Promise<void>;
  /** Announces use by the tenant: rebuilds unknown usage in the background. Never throws. */
  expectUse(tenant: Tenant): void;
  /**
   * Counts the amount of a record that was read at start, regardless of the limit. Does nothing if
   * usage outlives the replica.
   */
  restore(
    tenant: Tenant,
    resource: QuotaResource,
    part: { readonly name: string; readonly amount: number },
  ): Promise<void>;
  /**
   * Lists unsettled reservations of at least this age, oldest first, at most 100. Empty if usage
   * belongs to the replica.
   */
  unreconciled(
    tenant: Tenant,
    resource: QuotaResource,
    olderThanMs: number,
  ): Promise<readonly Reservation[]>;
  /**
   * All parts of a usage, for comparison with the records. Parts that change during the call may be
   * missing or appear twice. Empty if usage belongs to the replica.
   */
  parts(tenant: Tenant, resource: QuotaResource): Promise<readonly UsagePart[]>;
  /**
   * Sets each name to `amount`, as its record says, without open reservations; 0 if there is no
   * record. Skips names that were reserved or confirmed again since `version`. Version '' means a
   * name that does not count. At most 100. Idempotent.
   */
  reconcile(
    tenant: Tenant,
    resource: QuotaResource,
    settled: readonly ReconciledReservation[],
  ): Promise<void>;
}
