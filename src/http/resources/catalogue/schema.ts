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
  .describe('By resource, such as `cpu` and `memory`.');

/** A list without pages. */
const listOf = <T extends z.ZodType>(item: T) =>
  z.object({ total: z.int().describe('How many there are.'), items: z.array(item) });

const InstanceType = z
  .object({
    name: z.string(),
    showName: z.string().describe('For people.'),
    description: z.string(),
    baseResources: z
      .object({ requests: quantities, limits: quantities })
      .describe('Of an instance with the multiplier 1.'),
    maxMultiplier: z.int().describe('The largest multiplier.'),
    extensions: z.record(z.string(), z.string()).describe('Data, never interpreted.'),
  })
  .meta({ id: 'InstanceType' });
export const InstanceTypeList = listOf(InstanceType).meta({ id: 'InstanceTypeList' });

const Volume = z
  .object({
    claimName: z.string(),
    displayName: z.string().describe('For people.'),
    capacity: z.string().describe('A resource quantity; empty where it is not known.'),
    accessModes: z.array(z.string()).describe('Such as `ReadWriteOnce` and `ReadWriteMany`.'),
    storageClass: z.string(),
    phase: z.literal('Bound'),
  })
  .meta({ id: 'Volume' });
export const VolumeList = listOf(Volume).meta({ id: 'VolumeList' });

export const FeatureGates = z
  .object({
    volumes: z.boolean().describe('`GET /volumes` has what `overrides.volumes` may mount.'),
    instanceType: z.boolean().describe('Pools may name an `instanceType`.'),
    approvals: z.boolean(),
    envs: z.boolean(),
    autoscaling: z.boolean(),
    multiCluster: z.boolean(),
    terminal: z.boolean(),
    exec: z.boolean(),
    pause: z.boolean().describe('`PUT /sandboxes/{sandboxId}/state` pauses sandboxes.'),
    files: z.boolean().describe('`GET /sandboxes/{sandboxId}/files` and what is beside it.'),
    processes: z.boolean().describe('`/sandboxes/{sandboxId}/processes` runs processes.'),
    logs: z.boolean(),
    quotas: z.boolean(),
    compatibleApi: z.boolean(),
    console: z.boolean(),
  })
  .meta({ id: 'FeatureGates' });

const latencyMs = maybe(z.number()).describe(
  'Of the last heartbeat, there and back, in ms; left out where none came back yet.',
);

const ClusterRoute = z
  .object({
    manager: z.string().describe('The replica that answers: links are of each replica.'),
    links: z
      .array(
        z.object({
          linkID: z.string().describe('As `Sandpool-Link` of an answer that came over it.'),
          replica: z.string().describe("The cluster's replica that opened it."),
          status: z
            .enum(LINK_STATUSES)
            .describe('What is new goes over those that are `Open`, in turn.'),
          openedAt: timestamp,
          takesTemplates: z
            .boolean()
            .describe('False: of a version that knows no global templates, and is told of none.'),
          keysRemade: maybe(z.int()).describe(
            'How many copies of promoted keys the replica says it made anew since then, as they ' +
              'had been kept with another pepper than it has; left out where none.',
          ),
          latencyMs,
        }),
      )
      .describe('The first 16.'),
  })
  .meta({ id: 'ClusterRoute' });

const Cluster = z
  .object({
    clusterID: z.string().describe("As it stands before a sandbox's id or a pool's name."),
    isLocal: z.boolean().describe('Whether it is the one that answers.'),
    status: z.enum(['Connected', 'Disconnected']),
    lastHeartbeat: maybe(timestamp).describe(
      'When it was heard of last; left out where it was not since the daemon started.',
    ),
    links: maybe(z.int()).describe(
      'How many there are of its replicas to the one that answers. At a manager, of its workers.',
    ),
    latencyMs: maybe(z.number()).describe(
      'Of the last heartbeat there and back, in ms, over the fastest link that is open.',
    ),
    route: maybe(ClusterRoute).describe('How a manager reaches it.'),
    invitedUntil: maybe(timestamp).describe(
      'It has never joined, and may by its join token until then; left out of those that have. ' +
        'Until it does it is no cluster: nothing is asked of it, and its names are ' +
        'CLUSTER_NOT_FOUND.',
    ),
    copyRefusedAt: maybe(timestamp).describe(
      'When a daemon on a copy of its data folder last asked for a link, and was refused since ' +
        'the other one is linked; left out where none asks.',
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
        .describe('A status that nobody has is left out.'),
      byNamespace: z.record(z.string(), z.int()),
    }),
    incomplete,
  })
  .meta({ id: 'SandboxStatistics' });

export type InstanceTypeWire = z.infer<typeof InstanceType>;
export type VolumeWire = z.infer<typeof Volume>;
export type ClusterWire = z.infer<typeof Cluster>;
export type SandboxStatisticsWire = z.infer<typeof SandboxStatistics>;
