import type { Clock } from '../../contracts/clock.ts';
import type { InstanceTypes } from '../../contracts/instance-types.ts';
import type { SandboxDriver } from '../../contracts/sandbox-driver.ts';
import type { Volumes } from '../../contracts/volumes.ts';
import type { TemplateOperations } from './template-operations.ts';
import type { ClusterView } from '../../actors/views.ts';

export interface CatalogueDeps {
  readonly instanceTypes: InstanceTypes;
  readonly volumes: Volumes;
  readonly driver: Pick<SandboxDriver, 'files' | 'processes' | 'describe'>;
  readonly clock: Clock;
  readonly clusterId: string;
  readonly listOthers?: () => readonly ClusterView[];
  readonly hasConsole: boolean;
  readonly holdsRequests: boolean;
  readonly servesCompatibleApi: boolean;
}

/** Operations `GET /instancetypes`, `/volumes`, `/feature-gates`, `/clusters`. */
export const catalogue = ({
  instanceTypes,
  volumes,
  driver,
  clock,
  clusterId,
  listOthers,
  hasConsole,
  holdsRequests,
  servesCompatibleApi,
}: CatalogueDeps): Pick<
  TemplateOperations,
  'listInstanceTypes' | 'listVolumes' | 'featureGates' | 'listClusters'
> => ({
  listInstanceTypes: () => instanceTypes.list(),
  listVolumes: (caller) => volumes.list(caller.namespace),
  featureGates: () => ({
    volumes: volumes.provided,
    instanceType: instanceTypes.provided,
    approvals: holdsRequests,
    envs: true,
    autoscaling: true,
    multiCluster: listOthers !== undefined,
    terminal: true,
    exec: true,
    files: driver.files.provided,
    processes: driver.processes.provided,
    logs: true,
    pause: driver.describe().pauses,
    quotas: true,
    compatibleApi: servesCompatibleApi,
    console: hasConsole,
  }),
  listClusters: () => [
    { clusterId, isLocal: true, status: 'Connected', lastHeartbeat: clock.now() },
    ...(listOthers?.() ?? []),
  ],
});
