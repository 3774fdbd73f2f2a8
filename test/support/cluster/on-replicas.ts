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
  const replicas = await Replicas.start({ cluster, redis: redis.settings, ...options });
  return {
    replicas,
    stop: async () => {
      await replicas.stop();
      await redis.stop();
    },
  };
};

/**
 * Replicas of the built daemon on this cluster, with a Redis of their own, from the suite's first
 * hooks on.
 */
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

/** Suites that have not ended yet. */
let users = 0;
let shared: Promise<Started> | undefined;
const stopShared = async (): Promise<void> => {
  const ending = shared;
  shared = undefined;
  await (await ending?.catch(() => undefined))?.stop();
};

/**
 * Three replicas with nothing set, for suites beside each other in the order of their files: they
 * start with the first of these, and stop after the last. A suite has tenants and templates of
 * its own, and starts again what it kills.
 */
export const onSharedReplicas = (cluster: () => Cluster): (() => Replicas) => {
  let own: Started | undefined;
  users += 1;
  before('replicas', async () => {
    own = await (shared ??= started(cluster(), {}));
  });
  after('the replicas', async () => {
    users -= 1;
    if (users === 0) await stopShared();
  });
  return () => known(own);
};
beforeTheClusterStops(stopShared);

const known = (found: Started | undefined): Replicas => {
  if (!found) throw new Error('there are replicas from the first before hook on, not earlier');
  return found.replicas;
};
