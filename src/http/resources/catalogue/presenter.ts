import type { Volume } from '../../../contracts/volumes.ts';
import type { InstanceType } from '../../../model/templates/instance-type.ts';
import type { ClusterView, RouteView, SandboxStatistics } from '../../../actors/views.ts';
import type { ClusterWire, InstanceTypeWire, SandboxStatisticsWire, VolumeWire } from './schema.ts';
import { timestampOf } from '../../corridor/common-schema.ts';

/** That cluster controls the number and content of its links. */
const MOST_LINKS = 16;
const MOST_CHARACTERS = 64;

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
  route,
  invitedUntil,
  copyRefusedAt,
}: ClusterView): ClusterWire => ({
  clusterID: clusterId,
  isLocal,
  status,
  lastHeartbeat: timestampOf(lastHeartbeat),
  ...(route === undefined ? {} : presentRoute(route)),
  invitedUntil: timestampOf(invitedUntil),
  copyRefusedAt: timestampOf(copyRefusedAt),
});

const presentRoute = ({
  manager,
  links,
}: RouteView): Pick<ClusterWire, 'links' | 'latencyMs' | 'route'> => {
  const open = links.flatMap(({ status, latencyMs }) =>
    status === 'Open' && latencyMs !== undefined ? [latencyMs] : [],
  );
  return {
    links: links.length,
    latencyMs: open.length === 0 ? undefined : inThousandths(Math.min(...open)),
    route: {
      manager,
      links: links
        .slice(0, MOST_LINKS)
        .map(({ linkId, replica, status, openedAt, latencyMs, keysRemade }) => ({
          linkID: linkId,
          replica: replica.slice(0, MOST_CHARACTERS),
          status,
          openedAt: timestampOf(openedAt),
          takesTemplates: true,
          keysRemade: keysRemade > 0 ? keysRemade : undefined,
          latencyMs: latencyMs === undefined ? undefined : inThousandths(latencyMs),
        })),
    },
  };
};

const inThousandths = (ms: number): number => Math.round(ms * 1_000) / 1_000;

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
