import type { Clock } from '../../contracts/clock.ts';
import type { LinkedCluster } from '../../contracts/fleet/cluster-links.ts';
import type { GaugeName } from '../../contracts/metric-catalogue.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import type { ManagerLinks } from '../../fleet/link/manager-links.ts';
import type { ManagerStanding } from '../../fleet/link/worker-links.ts';
import type { ManagerAccess } from '../../fleet/replication/manager-access.ts';
import type { PassedRequests } from '../../fleet/routing/pass-on.ts';

interface ToldOfClusters {
  readonly links: Pick<ManagerLinks, 'list' | 'refused'>;
  readonly passed: Pick<PassedRequests, 'of'>;
  readonly clock: Pick<Clock, 'now'>;
}

export const tellOfClusters = (
  metrics: Metrics,
  { links, passed, clock }: ToldOfClusters,
): void => {
  for (const [name, valueOf] of Object.entries(OF_CLUSTER) as readonly [OfCluster, ValueOf][])
    metrics.read(name, () =>
      links.list().flatMap((cluster) => {
        const value = valueOf(cluster, clock.now());
        return value === undefined ? [] : [{ labels: { cluster_id: cluster.clusterId }, value }];
      }),
    );
  metrics.read('sandpool_cluster_requests_total', () =>
    links.list().flatMap(({ clusterId }) =>
      Object.entries(passed.of(clusterId)).map(([outcome, value]) => ({
        labels: { cluster_id: clusterId, outcome },
        value,
      })),
    ),
  );
  metrics.read('sandpool_links_refused_total', () =>
    [...links.refused.counts].map(([reason, value]) => ({ labels: { reason }, value })),
  );
};

type OfCluster = Extract<GaugeName, `sandpool_cluster_${string}`>;
type ValueOf = (cluster: LinkedCluster, now: number) => number | undefined;

const OF_CLUSTER: Readonly<Record<OfCluster, ValueOf>> = {
  sandpool_cluster_connected: ({ isConnected }) => (isConnected ? 1 : 0),
  sandpool_cluster_links: ({ links }) => links.length,
  sandpool_cluster_heartbeat_age_seconds: ({ lastHeartbeat }, now) =>
    lastHeartbeat === undefined ? undefined : (now - lastHeartbeat) / 1_000,
  sandpool_cluster_latency_seconds: ({ links }) => {
    const took = links.flatMap(({ latencyMs }) => latencyMs ?? []);
    return took.length === 0 ? undefined : Math.min(...took) / 1_000;
  },
};

interface ToldOfManagers {
  readonly addresses: readonly string[];
  readonly standings: () => readonly ManagerStanding[] | undefined;
  readonly access: Pick<ManagerAccess, 'isCutOff'>;
}

export const tellOfManagers = (
  metrics: Metrics,
  { addresses, standings, access }: ToldOfManagers,
): void => {
  const each = (): readonly ManagerStanding[] =>
    standings() ?? [...new Set(addresses)].map((address) => ({ address, links: 0, failed: 0 }));
  metrics.read('sandpool_manager_links', () =>
    each().map(({ address, links }) => ({ labels: { manager: address }, value: links })),
  );
  metrics.read('sandpool_manager_dials_failed_total', () =>
    each().map(({ address, failed }) => ({ labels: { manager: address }, value: failed })),
  );
  metrics.read('sandpool_manager_cut_off', () =>
    [...new Set(addresses)].map((manager) => ({
      labels: { manager },
      value: access.isCutOff ? 1 : 0,
    })),
  );
};
