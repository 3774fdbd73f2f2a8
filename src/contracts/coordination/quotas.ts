import type { Revision } from '../../model/identifiers.ts';
import type { QuotaAmounts, QuotaResource } from '../../model/pools/quota.ts';
import type { Tenant } from '../../model/tenant.ts';

export interface QuotaEntry {
  readonly name: string;
  readonly amount: number;
  readonly limit: number;
  /**
   * Tells this replica's attempts at one name apart, where there may be several. One attempt has
   * one reservation of a name.
   */
  readonly attempt?: string;
}

/** Describes what a record says from a revision on. */
export interface Confirmation {
  readonly name: string;
  readonly amount: number;
  readonly revision: Revision;
  /** The attempt whose reservation allowed it, if anyone's. */
  readonly attempt?: string;
}

/** The reservations of a name, or the reservation of one attempt. */
export interface ReservedName {
  readonly name: string;
  readonly attempt?: string | undefined;
}

/**
 * Milliseconds after it was made in which a reservation may be written under without
 * `stillReserved`.
 */
export const RESERVATION_MS = 1_000;

/** A write that a reservation allowed has landed so long after it was sent, or never does. */
export const WRITE_MS = 2_000;

/** A part of a tenant's usage of which nobody has said yet that a record stands behind it. */
export interface Reservation {
  readonly name: string;
  /** Moves with each change of the name's part. Opaque. */
  readonly version: string;
}

/** A name's part of a tenant's usage. */
export interface UsagePart extends Reservation {
  readonly amount: number;
  /** Somebody's reservation of it is open: a write may be under way. */
  readonly isReserved: boolean;
}

/**
 * Describes what the name's record says; `revision`: where it says so, if it has one that is
 * compared.
 */
export interface ReconciledReservation extends Reservation {
  readonly amount: number;
  readonly revision?: Revision;
}

/**
 * Usage as a set of names, so that each change may be repeated. A name counts with what its record
 * said last, or with the largest reservation of it where that is more: reservations of one name by
 * several attempts don't add up, and each is taken back by its own attempt alone. Where a tenant's
 * set is not known (lost, or an older copy) it is made anew from the records, after all writes that
 * were under way have landed; until then answers reject with `unavailable`.
 */
export interface Quotas {
  /**
   * Reserves `amount` under `name`, unless the tenant's usage grows beyond the limit by that.
   * Repeating it replaces the attempt's own reservation. Answers false, and changes nothing, where
   * the limit would be passed.
   */
  reserve(tenant: Tenant, resource: QuotaResource, entry: QuotaEntry): Promise<boolean>;
  /**
   * Takes back what the attempt reserved under the name, and nothing else: what others reserved
   * stays, and what a record says. May be repeated.
   */
  withdraw(tenant: Tenant, resource: QuotaResource, reserved: ReservedName): Promise<void>;
  /**
   * A write has landed: what it says counts in the place of the attempt's reservation, unless a
   * later revision was confirmed. Of a name that does not count it does nothing. May be repeated,
   * in any order.
   */
  confirm(tenant: Tenant, resource: QuotaResource, confirmation: Confirmation): Promise<void>;
  /**
   * Whether the attempt's reservation counts at this moment; without an attempt any of this
   * replica's. Asked before a write that comes more than a second after it.
   */
  stillReserved(tenant: Tenant, resource: QuotaResource, reserved: ReservedName): Promise<boolean>;
  /**
   * Removes the name's part, whoever reserved it: its record is gone, or about to be. May be
   * repeated.
   */
  release(tenant: Tenant, resource: QuotaResource, name: string): Promise<void>;
  /**
   * Tells what counts against the tenant's limits now, with what is reserved. Rejects with
   * `unavailable` where it is not known, and has it made known.
   */
  used(tenant: Tenant): Promise<QuotaAmounts>;
  /**
   * Resolves once what counts is known, which takes some seconds for a new tenant. Rejects with
   * `unavailable` where it is not by then.
   */
  whenKnown(tenant: Tenant): Promise<void>;
  /**
   * The tenant is about to use something: what is not known is made known, in the background. Never
   * throws.
   */
  expectUse(tenant: Tenant): void;
  /**
   * Counts what a record shows that was read at a start, whatever the limit. Does nothing where
   * usage outlives the replica.
   */
  restore(
    tenant: Tenant,
    resource: QuotaResource,
    part: { readonly name: string; readonly amount: number },
  ): Promise<void>;
  /**
   * Lists the reservations made at least so long ago and not yet settled, the oldest first, at most
   * 100. None where usage is the replica's own.
   */
  unreconciled(
    tenant: Tenant,
    resource: QuotaResource,
    olderThanMs: number,
  ): Promise<readonly Reservation[]>;
  /**
   * All parts of a usage, to be compared with the records; one that changes meanwhile may lack, or
   * be told twice. None where usage is the replica's own.
   */
  parts(tenant: Tenant, resource: QuotaResource): Promise<readonly UsagePart[]>;
  /**
   * Each counts `amount` from now on, which is what its record says, and is nobody's to withdraw; 0
   * where there is none. One that was reserved or confirmed again meanwhile stays as it is; the
   * version '' is that of a name that does not count. At most 100. May be repeated.
   */
  reconcile(
    tenant: Tenant,
    resource: QuotaResource,
    settled: readonly ReconciledReservation[],
  ): Promise<void>;
}
