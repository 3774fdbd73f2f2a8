import { silentLog } from '../src/contracts/log.ts';
import { silentMetrics } from '../src/contracts/metrics.ts';
import { systemClock } from '../src/embedded/system-clock.ts';
import { Refusal } from '../src/model/refusals.ts';
import type { Tenant } from '../src/model/tenant.ts';
import { keysOf } from '../src/redis/keys.ts';
import { RedisQuotas } from '../src/redis/quotas.ts';
import { RedisLink } from '../src/redis/redis-link.ts';
import type { RedisSettings } from '../src/redis/settings.ts';
import { eventually } from './eventually.ts';

/**
 * Replicas would find out after some seconds: they wait for possible writes, which a tenant without
 * a key can't have. Changes nothing that is known.
 */
export const knownAsUnused = async (settings: RedisSettings, tenant: Tenant): Promise<void> => {
  const link = new RedisLink({ settings, name: 'unused', log: silentLog, metrics: silentMetrics });
  await link.start();
  try {
    const quotas = new RedisQuotas({
      link,
      keys: keysOf(settings.prefix),
      log: silentLog,
      clock: systemClock(),
      replica: 'none',
      usage: { of: () => Promise.resolve(new Map()), tenants: () => [] },
      replicas: () => [],
      rebuildWaitMs: 0,
    });
    // Redis may not answer for a moment
    const isKnown = (): Promise<boolean> =>
      quotas.whenKnown(tenant).then(
        () => true,
        (error: unknown) => {
          if (error instanceof Refusal && error.code === 'UNAVAILABLE') return false;
          throw error;
        },
      );
    await eventually(isKnown, 'it is known that a new tenant uses nothing');
  } finally {
    link.stop();
  }
};
