import type { ClusterRoute, FleetLinks } from '../../contracts/fleet/cluster-links.ts';
import { clusterUnavailable } from '../../model/fleet/cluster-refusals.ts';
import { clusterNotFound } from '../../model/refusals.ts';
import type { ClusterView } from '../../actors/views.ts';

/** The way to another cluster, for what is passed on to it. */
export type WayToCluster = ClusterRoute;

/** Tells what a manager knows of the clusters of its fleet besides its own. */
export interface FleetOperations {
  /** The manager's own cluster. */
  readonly clusterId: string;
  /** Those that have joined, by id in order; also those that are not connected. */
  readonly listOthers: () => readonly ClusterView[];
  /** Lists those too that were invited alone: people see them, and nothing is asked of them. */
  readonly listShown: () => readonly ClusterView[];
  /**
   * Finds the way to a cluster. Refuses with CLUSTER_NOT_FOUND where none of this id has ever
   * joined, with CLUSTER_UNAVAILABLE where no link to it stands.
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
