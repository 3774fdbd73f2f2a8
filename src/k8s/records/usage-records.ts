import type { RecordedPart, TenantUsage, UsageRecords } from '../../contracts/usage-records.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';
import {
  amountsOfPool,
  eachResource,
  SIZED_RESOURCES,
  type QuotaResource,
} from '../../model/pools/quota.ts';
import { tenantKey, type Tenant } from '../../model/tenant.ts';
import type { ApiClient, ListQuery } from '../api/api-calls.ts';
import { listPageOf } from '../api/api-objects.ts';
import type { ResourceRecords } from './resource-records.ts';
import {
  OWNER_LABEL,
  ownerLabel,
  sandboxesPath,
  STATE_LABEL,
  storedSandboxOf,
} from '../sandboxes/sandbox-resource.ts';

const PAGE = 250;
/** Beyond this number of tenants, all records are listed. */
const MOST_APART = 64;

export const usageRecords = (
  api: Pick<ApiClient, 'list'>,
  pools: Pick<ResourceRecords<PoolRecord>, 'list' | 'mirrored'>,
): UsageRecords => ({
  of: async (tenants) => {
    const usages = new Usages(tenants);
    const read =
      tenants.length > MOST_APART
        ? [
            readSandboxes(api, usages, {
              path: sandboxesPath(),
              labelSelector: `${STATE_LABEL}=claimed`,
            }),
            readPools(pools, usages),
          ]
        : tenants.flatMap((tenant) => [
            readSandboxes(api, usages, {
              path: sandboxesPath(tenant.namespace),
              labelSelector: `${OWNER_LABEL}=${ownerLabel(tenant)}`,
            }),
            readPools(pools, usages, tenant.namespace),
          ]);
    await Promise.all(read);
    return usages.found;
  },
  tenants: () =>
    new Map([...pools.mirrored()].map(({ owner }) => [tenantKey(owner), owner])).values(),
});

/** Counts a record once even if read twice. */
class Usages {
  readonly #parts: ReadonlyMap<string, Readonly<Record<QuotaResource, Map<string, RecordedPart>>>>;

  constructor(tenants: readonly Tenant[]) {
    this.#parts = new Map(
      tenants.map((tenant) => [
        tenantKey(tenant),
        eachResource(() => new Map<string, RecordedPart>()),
      ]),
    );
  }

  add(owner: Tenant, resource: QuotaResource, part: RecordedPart): void {
    this.#parts.get(tenantKey(owner))?.[resource].set(part.name, part);
  }

  get found(): ReadonlyMap<string, TenantUsage> {
    return new Map(
      [...this.#parts].map(([key, parts]) => [
        key,
        eachResource((resource) => [...parts[resource].values()]),
      ]),
    );
  }
}

const readSandboxes = async (
  api: Pick<ApiClient, 'list'>,
  usages: Usages,
  { path, ...selection }: ListQuery & { readonly path: string },
): Promise<void> => {
  const read = (next?: string): Promise<unknown> =>
    api.list(path, {
      ...selection,
      limit: PAGE,
      ...(next === undefined ? {} : { continue: next }),
    });
  for (let reading = read(); ;) {
    const { items, next } = listPageOf(await reading);
    if (next !== undefined) {
      reading = read(next); // fetches the next page while this one is processed
      reading.catch(() => undefined); // reported when its turn comes
    }
    for (const object of items) {
      const record = storedSandboxOf(object)?.record;
      if (record?.claim)
        usages.add(record.claim.owner, 'sandboxes', { name: record.id, amount: 1 });
    }
    if (next === undefined) return;
  }
};

const readPools = async (
  pools: Pick<ResourceRecords<PoolRecord>, 'list'>,
  usages: Usages,
  namespace?: string,
): Promise<void> => {
  for (const record of await pools.list(namespace)) {
    const { uid, owner, revision } = record;
    const amounts = amountsOfPool(record);
    usages.add(owner, 'pools', { name: uid, amount: 1, revision });
    for (const resource of SIZED_RESOURCES)
      usages.add(owner, resource, { name: uid, amount: amounts[resource], revision });
  }
};
