import { systemClock } from '../../../src/embedded/system-clock.ts';
import type { TenantUsage, UsageRecords } from '../../../src/contracts/usage-records.ts';
import {
  redisCoordination,
  type RedisCoordinationOptions,
} from '../../../src/redis/coordination.ts';
import type { RedisSettings } from '../../../src/redis/settings.ts';
import { eachResource, type QuotaResource } from '../../../src/model/pools/quota.ts';
import { tenantKey, type Tenant } from '../../../src/model/tenant.ts';
import { FEW_BYTES } from '../fakes/a-coordination.ts';
import { eventually } from './eventually.ts';
import { quietLog } from '../fakes/quiet-log.ts';
import { silentMetrics } from '../../../src/contracts/metrics.ts';

/** Written by hand. */
export class WrittenUsage implements UsageRecords {
  readonly #tenants = new Map<string, Tenant>();
  readonly #parts = new Map<string, Map<string, number>>();
  reads = 0;

  partsOf(tenant: Tenant, resource: QuotaResource): Map<string, number> {
    const key = `${resource}/${tenantKey(tenant)}`;
    const parts = this.#parts.get(key) ?? new Map<string, number>();
    this.#parts.set(key, parts);
    this.#tenants.set(tenantKey(tenant), tenant);
    return parts;
  }

  async of(tenants: readonly Tenant[]): Promise<ReadonlyMap<string, TenantUsage>> {
    this.reads += 1;
    return new Map(tenants.map((tenant) => [tenantKey(tenant), this.#usageOf(tenant)]));
  }

  tenants(): Iterable<Tenant> {
    return this.#tenants.values();
  }

  #usageOf(tenant: Tenant): TenantUsage {
    const parts = (resource: QuotaResource): TenantUsage[QuotaResource] =>
      [...this.partsOf(tenant, resource)].map(([name, amount]) => ({
        name,
        amount,
        revision: '1',
      }));
    return eachResource(parts);
  }
}

export const aRedisCoordination = async (
  settings: RedisSettings,
  part: Partial<RedisCoordinationOptions> = {},
) => {
  const redis = redisCoordination({
    metrics: silentMetrics,
    settings,
    replica: 'replica-1',
    usage: new WrittenUsage(),
    keptAnswers: FEW_BYTES,
    clock: systemClock(),
    log: quietLog,
    ...part,
  });
  await redis.start();
  return redis;
};

export const twoRedisCoordinations = async (
  settings: RedisSettings,
  part: Partial<RedisCoordinationOptions> = {},
) => {
  const usage = part.usage ?? new WrittenUsage();
  const [first, second] = await Promise.all([
    aRedisCoordination(settings, { ...part, usage, replica: 'replica-1' }),
    aRedisCoordination(settings, { ...part, usage, replica: 'replica-2' }),
  ]);
  return {
    one: first.coordination,
    other: second.coordination,
    stop: async (): Promise<void> => {
      await Promise.all([first.stop(), second.stop()]);
    },
  };
};

/** Repeats until the tenant's usage is known. */
export const known = async (ask: () => Promise<unknown>): Promise<void> => {
  await eventually(
    () =>
      ask().then(
        () => true,
        () => false,
      ),
    'usage is known',
  );
};
