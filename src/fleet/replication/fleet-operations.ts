import type { ClusterRoute, FleetLinks } from '../../contracts/fleet/cluster-links.ts';
import { clusterUnavailable } from '../../model/fleet/cluster-refusals.ts';
import { clusterNotFound } from '../../model/refusals.ts';
import type { ClusterView } from '../../actors/views.ts';

export type WayToCluster = ClusterRoute;

/** The other clusters of a manager's fleet. */
export interface FleetOperations {
  readonly clusterId: string;
  /** Sorted by id; connected or not. */
  readonly listOthers: () => readonly ClusterView[];
  readonly listShown: () => readonly ClusterView[];
  /**
   * Refuses with CLUSTER_NOT_FOUND if the cluster has not joined, and with CLUSTER_UNAVAILABLE if
   * it has no link.
   */
  readonly wayTo: (clusterId: string) => WayToCluster;
}

export const fleetOperations = (links: FleetLinks, clusterId: string): FleetOperations => {
  const listOthers = (): readonly ClusterView[] =>
    links.list().map((each) => ({
      clusterId: each.clusterId,
      isLocal: false,
      status: each.isConnected ? 'Connected' : 'Disconnected',
      lastHeartbeat: each.lastHeartbeat,
      copyRefusedAt: each.copyRefusedAt,
      route: { manager: links.replica, links: each.links },
    }));
  const listInvited = (): readonly ClusterView[] =>
    links.invited().map((each) => ({
      clusterId: each.clusterId,
      isLocal: false,
      status: 'Disconnected',
      lastHeartbeat: undefined,
      invitedUntil: each.endsAt,
    }));
  return {
    clusterId,
    listOthers,
    listShown: () =>
      [...listOthers(), ...listInvited()].sort((a, b) => (a.clusterId < b.clusterId ? -1 : 1)),
    wayTo: (asked) => {
      const way = links.find(asked);
      if (way) return way;
      if (!links.list().some((each) => each.clusterId === asked)) throw clusterNotFound();
      throw clusterUnavailable(asked, 'is not connected; try again');
    },
  };
};
