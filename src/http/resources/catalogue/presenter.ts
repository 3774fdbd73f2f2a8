import type { Volume } from '../../../contracts/volumes.ts';
import type { InstanceType } from '../../../model/templates/instance-type.ts';
import type { ClusterView, SandboxStatistics } from '../../../operations/views.ts';
import type { ClusterWire, InstanceTypeWire, SandboxStatisticsWire, VolumeWire } from './schema.ts';
import { timestampOf } from '../common-schema.ts';

/** A list that is shown whole. */
export const presentList = <T, W>(items: readonly T[], present: (item: T) => W) => ({
  total: items.length,
  items: items.map(present),
});

export const presentInstanceType = ({
  name,
  showName,
  description,
  baseResources,
  maxMultiplier,
  extensions,
}: InstanceType): InstanceTypeWire => ({
  name,
  showName,
  description,
  baseResources: { requests: baseResources.requests, limits: baseResources.limits },
  maxMultiplier,
  extensions,
});

export const presentVolume = ({
  claimName,
  displayName,
  capacity,
  accessModes,
  storageClass,
  phase,
}: Volume): VolumeWire => ({
  claimName,
  displayName,
  capacity,
  accessModes: [...accessModes],
  storageClass,
  phase,
});

export const presentCluster = ({
  clusterId,
  isLocal,
  status,
  lastHeartbeat,
}: ClusterView): ClusterWire => ({
  clusterID: clusterId,
  isLocal,
  status,
  ...(lastHeartbeat === undefined ? {} : { lastHeartbeat: timestampOf(lastHeartbeat) }),
});

export const presentStatistics = ({
  total,
  byStatus,
  byNamespace,
}: SandboxStatistics): SandboxStatisticsWire => ({
  statistics: {
    total,
    byStatus: Object.fromEntries(byStatus),
    byNamespace: Object.fromEntries(byNamespace),
  },
});
