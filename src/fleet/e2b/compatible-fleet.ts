import type { Clock } from '../../contracts/clock.ts';
import type { CompatibleApiDeps } from '../../http/e2b/compatible-api.ts';
import type { Clients } from '../../http/limits/clients.ts';
import type { Operations } from '../../services/operations.ts';
import type { FleetDeps } from '../routing/fleet-router.ts';
import { managerStages } from '../routing/manager-stages.ts';
import { compatibleInFleet, type InFleetDeps } from './in-fleet.ts';
import { listOverClusters } from './list-over-clusters.ts';
import { toCluster } from './to-cluster.ts';

export interface CompatibleFleetDeps extends Omit<InFleetDeps, 'operations'> {
  readonly fleet: FleetDeps;
  readonly operations: Operations;
  readonly clients: Clients;
  readonly clock: Clock;
}

/** Makes what the compatible API of a manager needs to reach its other clusters. */
export const compatibleFleet = ({
  fleet,
  operations,
  clients,
  clock,
  ...deps
}: CompatibleFleetDeps): Pick<CompatibleApiDeps['terms'], 'manager' | 'others'> => {
  const surface = compatibleInFleet({ operations, ...deps });
  return {
    manager: managerStages({ ...fleet, surface }, operations, listOverClusters),
    others: {
      listOthers: fleet.fleet.listOthers,
      toCluster: (admitted, request, exchanged) =>
        toCluster({ fleet, clients, clock }, admitted, { request, exchanged }),
    },
  };
};
