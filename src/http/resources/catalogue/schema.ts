import { z } from 'zod';
import { LINK_STATUSES } from '../../../model/fleet/cluster.ts';
import { SANDBOX_STATUSES } from '../../../model/sandbox.ts';
import {
  clusterID,
  incomplete,
  maybe,
  ofCluster,
  timestamp,
} from '../../corridor/common-schema.ts';

const quantities = z
  .record(z.string(), z.string())
  .describe('Quantities by resource, such as `cpu` and `memory`.');

const listOf = <T extends z.ZodType>(item: T) =>
  z.object({ total: z.int().describe('Number of items.'), items: z.array(item) });

const InstanceType = z
  .object({
    name: z.string(),
    showName: z.string().describe('Display name.'),
    description: z.string(),
    baseResources: z
      .object({ requests: quantities, limits: quantities })
      .describe('Resources of an instance with multiplier 1.'),
    maxMultiplier: z.int().describe('The largest multiplier.'),
    extensions: z
      .record(z.string(), z.string())
      .describe('Additional data. Sandpool does not interpret it.'),
  })
  .meta({ id: 'InstanceType' });
export const InstanceTypeList = listOf(InstanceType).meta({ id: 'InstanceTypeList' });

const Volume = z
  .object({
    claimName: z.string(),
    displayName: z.string().describe('Display name.'),
    capacity: z.string().describe('A resource quantity. Empty if unknown.'),
    accessModes: z.array(z.string()).describe('Such as `ReadWriteOnce` and `ReadWriteMany`.'),
    storageClass: z.string(),
    phase: z.literal('Bound'),
  })
  .meta({ id: 'Volume' });
export const VolumeList = listOf(Volume).meta({ id: 'VolumeList' });

export const FeatureGates = z
  .object({
    volumes: z
      .boolean()
      .describe('`GET /volumes` lists volumes, and `overrides.volumes` can mount them.'),
    instanceType: z.boolean().describe('Pools may name an `instanceType`.'),
    approvals: z.boolean(),
    envs: z.boolean(),
    autoscaling: z.boolean(),
    multiCluster: z.boolean(),
    terminal: z.boolean(),
    exec: z.boolean(),
    pause: z.boolean().describe('`PUT /sandboxes/{sandboxId}/state` pauses sandboxes.'),
    files: z
      .boolean()
      .describe('`GET /sandboxes/{sandboxId}/files` and the related operations work.'),
    processes: z.boolean().describe('`/sandboxes/{sandboxId}/processes` runs processes.'),
    logs: z.boolean(),
    quotas: z.boolean(),
    compatibleApi: z.boolean(),
    console: z.boolean(),
  })
  .meta({ id: 'FeatureGates' });

const latencyMs = maybe(z.number()).describe(
  'Round-trip time of the last heartbeat, in milliseconds. Absent before the first one.',
);

const ClusterRoute = z
  .object({
    manager: z.string().describe("Manager's replica that answers. Each replica has its own links."),
    links: z
      .array(
        z.object({
          linkID: z
            .string()
            .describe('Value of `Sandpool-Link` in answers that came over this link.'),
          replica: z.string().describe('Replica of the cluster that opened the link.'),
          status: z.enum(LINK_STATUSES).describe('New requests use the `Open` links in turn.'),
          openedAt: timestamp,
          takesTemplates: z
            .boolean()
            .describe(
              "`false` if the replica's version does not support global templates; it " +
                'receives none.',
            ),
          keysRemade: maybe(z.int()).describe(
            'Number of copies of promoted keys that the replica reported as stored again ' +
              'since `openedAt`, because its pepper had changed. Absent if there are none.',
          ),
          latencyMs,
        }),
      )
      .describe('At most 16 links.'),
  })
  .meta({ id: 'ClusterRoute' });

const Cluster = z
  .object({
    clusterID: z.string().describe('Prefix of the cluster in sandbox ids and pool names.'),
    isLocal: z.boolean().describe('Whether this cluster answers the request.'),
    status: z.enum(['Connected', 'Disconnected']),
    lastHeartbeat: maybe(timestamp).describe(
      'When the last heartbeat arrived. Absent if none has arrived since the daemon started.',
    ),
    links: maybe(z.int()).describe(
      'Number of links between its replicas and the replica that answers; for a manager, of ' +
        'the links of its workers.',
    ),
    latencyMs: maybe(z.number()).describe(
      'Round-trip time of the last heartbeat over the fastest open link, in milliseconds.',
    ),
    route: maybe(ClusterRoute).describe('How the manager reaches it.'),
    invitedUntil: maybe(timestamp).describe(
      'The cluster has never joined, and can join with its join token until this time. ' +
        'Until it joins, it receives no requests, and its names are answered with ' +
        'CLUSTER_NOT_FOUND. Absent if it has joined.',
    ),
    copyRefusedAt: maybe(timestamp).describe(
      "When a daemon with a copy of the cluster's data folder last asked for a link. It was " +
        'refused because the other daemon is linked. Absent if no such daemon has asked ' +
        'recently.',
    ),
  })
  .meta({ id: 'Cluster' });
export const ClusterList = listOf(Cluster).meta({ id: 'ClusterList' });

export const CatalogueQuery = z.object({ clusterID: ofCluster });

export const StatisticsQuery = z.object({ clusterID });

export const SandboxStatistics = z
  .object({
    statistics: z.object({
      total: z.int().describe('The sum of `byStatus`.'),
      byStatus: z
        .partialRecord(z.enum(SANDBOX_STATUSES), z.int())
        .describe('A status without sandboxes is omitted.'),
      byNamespace: z.record(z.string(), z.int()),
    }),
    incomplete,
  })
  .meta({ id: 'SandboxStatistics' });

export type InstanceTypeWire = z.infer<typeof InstanceType>;
export type VolumeWire = z.infer<typeof Volume>;
export type ClusterWire = z.infer<typeof Cluster>;
export type SandboxStatisticsWire = z.infer<typeof SandboxStatistics>;
