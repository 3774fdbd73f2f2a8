import type { Cluster } from '../../../local-cluster/control-plane/cluster.ts';
import { startRedis, type RedisServer } from '../../../local-cluster/redis-server.ts';
import { Replicas, type ReplicasOptions } from '../../../local-cluster/replicas.ts';

/**
 * Replicas of the built daemon on this cluster, with a Redis of their own, from the suite's first
 * hooks on.
 */
export const onReplicas = (
  cluster: () => Cluster,
  options: Omit<ReplicasOptions, 'cluster' | 'redis'> = {},
): (() => Replicas) => {
  let redis: RedisServer | undefined;
  let replicas: Replicas | undefined;
  before('replicas', async () => {
    redis = await startRedis();
    replicas = await Replicas.start({ cluster: cluster(), redis: redis.settings, ...options });
  });
  after('the replicas', async () => {
    await replicas?.stop();
    await redis?.stop();
  });
  return () => {
    if (!replicas) throw new Error('there are replicas from the first before hook on, not earlier');
    return replicas;
  };
};
