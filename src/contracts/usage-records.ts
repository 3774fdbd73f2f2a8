import type { Revision } from '../model/identifiers.ts';
import type { QuotaResource } from '../model/pools/quota.ts';
import type { Tenant } from '../model/tenant.ts';

/**
 * `revision` is the first revision with this amount, if revisions are compared (Quotas.confirm).
 */
export interface RecordedPart {
  readonly name: string;
  readonly amount: number;
  readonly revision?: Revision;
}

export type TenantUsage = Readonly<Record<QuotaResource, readonly RecordedPart[]>>;

export interface UsageRecords {
  /**
   * By tenantKey; tenants without usage may be omitted. Read uncached after the call. Many tenants
   * cost little more than one.
   */
  of(tenants: readonly Tenant[]): Promise<ReadonlyMap<string, TenantUsage>>;
  tenants(): Iterable<Tenant>;
}
