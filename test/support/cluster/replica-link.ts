import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Cluster } from '../../../local-cluster/control-plane/cluster.ts';
import type { RedisServer } from '../../../local-cluster/redis-server.ts';
import { FaultProxy, type ProxyTls } from '../harness/fault-proxy.ts';

/** A replica's own links to the API server and Redis, which can break. */
export interface ReplicaLink {
  readonly toApi: FaultProxy;
  readonly toRedis: FaultProxy;
  /** Makes the replica use them. */
  readonly env: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

interface Ends {
  readonly cluster: Cluster;
  readonly redis: Pick<RedisServer, 'settings'>;
  /** For a kubeconfig, which stays there. */
  readonly folder: string;
  /** Lets the proxy see API traffic. */
  readonly tls?: ProxyTls;
}

export const aReplicaLink = async (
  name: string,
  { cluster, redis, folder, tls }: Ends,
): Promise<ReplicaLink> => {
  const [toApi, toRedis] = [
    new FaultProxy(placeOf(cluster.server), tls),
    new FaultProxy(placeOf(redis.settings.urls[0] ?? '')),
  ];
  const [apiPort, redisPort] = [await toApi.start(), await toRedis.start()];
  const kubeconfig = join(folder, `${name}.kubeconfig`);
  writeFileSync(
    kubeconfig,
    readFileSync(cluster.kubeconfig('sandpool'), 'utf8').replaceAll(
      cluster.server,
      `https://127.0.0.1:${apiPort}`,
    ),
    { mode: 0o600 },
  );
  return {
    toApi,
    toRedis,
    env: {
      SANDPOOL_KUBERNETES_KUBECONFIG: kubeconfig,
      SANDPOOL_REDIS_URLS: `redis://127.0.0.1:${redisPort}`,
    },
    stop: async () => {
      await Promise.all([toApi.stop(), toRedis.stop()]);
    },
  };
};

const placeOf = (url: string): { readonly host: string; readonly port: number } => ({
  host: '127.0.0.1',
  port: Number(new URL(url).port),
});
