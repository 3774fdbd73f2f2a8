import type { UsageRecords } from '../contracts/coordination.ts';
import type { Records } from '../contracts/record-store.ts';
import type { PoolRecord } from '../model/pool.ts';
import type { QuotaResource } from '../model/quota.ts';
import { tenantKey, type Tenant } from '../model/tenant.ts';
import type { ApiClient } from './api-client.ts';
import { listPageOf } from './api-objects.ts';
import { OWNER_LABEL, ownerLabel, sandboxesPath, storedSandboxOf } from './sandbox-resource.ts';

const PAGE = 250;

/** What a tenant uses by the API server's records: claimed sandboxes by id; pools, and their replicas, by uid. */
export const usageRecords = (api: ApiClient, pools: Records<PoolRecord>): UsageRecords => ({
  of: async (tenant, resource) => (resource === 'sandboxes' ? await claimedBy(api, tenant) : await poolsOf(pools, tenant, resource)),
});

const claimedBy = async (api: ApiClient, tenant: Tenant): Promise<ReadonlyMap<string, number>> => {
  const parts = new Map<string, number>();
  for (let next: string | undefined, first = true; first || next !== undefined; first = false) {
    const page = listPageOf(await api.list(sandboxesPath(tenant.namespace),
      { labelSelector: `${OWNER_LABEL}=${ownerLabel(tenant)}`, limit: PAGE, ...(next === undefined ? {} : { continue: next }) }));
    for (const object of page.items) {
      const record = storedSandboxOf(object)?.record;
      if (record?.claim && tenantKey(record.claim.owner) === tenantKey(tenant)) parts.set(record.id, 1);
    }
    next = page.next;
  }
  return parts;
};

const poolsOf = async (pools: Records<PoolRecord>, tenant: Tenant, resource: Exclude<QuotaResource, 'sandboxes'>): Promise<ReadonlyMap<string, number>> => {
  const own = (await pools.list()).filter(({ owner }) => tenantKey(owner) === tenantKey(tenant));
  return new Map(own.map(({ uid, replicas }) => [uid, resource === 'pools' ? 1 : replicas]));
};
