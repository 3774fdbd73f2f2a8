import type { Cluster } from '../../../local-cluster/control-plane/cluster.ts';
import { startRedis } from '../../../local-cluster/redis-server.ts';
import { Replicas, type ReplicasOptions } from '../../../local-cluster/replicas.ts';
import { beforeTheClusterStops } from './shared-cluster.ts';

interface Started {
  readonly replicas: Replicas;
  readonly stop: () => Promise<void>;
}

const started = async (
  cluster: Cluster,
  options: Omit<ReplicasOptions, 'cluster' | 'redis'>,
): Promise<Started> => {
  const redis = await startRedis();
  const replicas = await Replicas.start({ cluster, redis: redis.settings, ...options }).catch(
    async (error: unknown) => {
      await redis.stop();
      throw error;
    },
  );
  return {
    replicas,
    stop: async () => {
      await replicas.stop();
      await redis.stop();
    },
  };
};

/** Replicas of the built daemon with their own Redis, from the suite's first hooks on. */
export const onReplicas = (
  cluster: () => Cluster,
  options: Omit<ReplicasOptions, 'cluster' | 'redis'> = {},
): (() => Replicas) => {
  let own: Started | undefined;
  before('replicas', async () => {
    own = await started(cluster(), options);
  });
  after('the replicas', () => own?.stop());
  return () => known(own);
};

/** From the first of their suites to the last. */
const sharedReplicas = (
  env: Readonly<Record<string, string>>,
): ((cluster: () => Cluster) => () => Replicas) => {
  /** Unfinished suites. */
  let users = 0;
  let shared: Promise<Started> | undefined;
  const stopShared = async (): Promise<void> => {
    const ending = shared;
    shared = undefined;
    await (await ending?.catch(() => undefined))?.stop();
  };
  beforeTheClusterStops(stopShared);
  return (cluster) => {
    let own: Started | undefined;
    users += 1;
    before('replicas', async () => {
      own = await (shared ??= started(cluster(), { env }));
    });
    after('the replicas', async () => {
      users -= 1;
      if (users === 0) await stopShared();
    });
    return () => known(own);
  };
};

/**
 * Three replicas that suites share in sequence. A suite has its own tenants and templates, restarts
 * what it kills, and deletes failing pools. Pools with failed starts are retried after 2 s.
 */
export const onSharedReplicas = sharedReplicas({ SANDPOOL_BREAKER_FIRST_PAUSE_SECONDS: '2' });

/**
 * With the port for E2B's SDKs, no instance types, and trust in this machine's `X-Forwarded-For`.
 */
export const onSharedCompatibleReplicas = sharedReplicas({
  SANDPOOL_COMPATIBLE_API_LISTEN: '127.0.0.1:0',
  SANDPOOL_COMPATIBLE_API_IMAGES: 'registry.invalid/team',
  SANDPOOL_TRUSTED_PROXIES: '127.0.0.1',
  SANDPOOL_INSTANCE_TYPES_PROVIDER: 'none',
});

const known = (found: Started | undefined): Replicas => {
  if (!found) throw new Error('there are replicas from the first before hook on, not earlier');
  return found.replicas;
};
