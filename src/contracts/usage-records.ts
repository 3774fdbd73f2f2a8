import type { Revision } from '../model/identifiers.ts';
import type { QuotaResource } from '../model/pools/quota.ts';
import type { Tenant } from '../model/tenant.ts';

/**
 * A record's part of its owner's usage. `revision`: from which on it says so, where that is
 * compared (Quotas.confirm).
 */
export interface RecordedPart {
  readonly name: string;
  readonly amount: number;
  readonly revision?: Revision;
}

export type TenantUsage = Readonly<Record<QuotaResource, readonly RecordedPart[]>>;

/** Reads from the records what tenants use. */
export interface UsageRecords {
  /**
   * By tenantKey; one who uses nothing may be left out. Read uncached, after the call came. Costs
   * little more for many than for one.
   */
  of(tenants: readonly Tenant[]): Promise<ReadonlyMap<string, TenantUsage>>;
  /** Tenants who use something, as far as is known without asking. */
  tenants(): Iterable<Tenant>;
}
