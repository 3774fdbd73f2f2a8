import { z } from 'zod';
import { isDnsLabel } from '../../../model/identifiers.ts';
import { MAX_UNAVAILABLE_PATTERN } from '../../../model/pools/max-unavailable.ts';
import { POOL_PHASES } from '../../../model/pools/pool.ts';
import { POOL_CONDITIONS } from '../../../model/pools/pool-condition.ts';
import { poolNotFound } from '../../../model/refusals.ts';
import type { PathParams } from '../../corridor/route.ts';
import {
  access,
  clusterID,
  flag,
  limit,
  maybe,
  name,
  offset,
  pageOf,
  textMap,
  timestamp,
  unsettable,
} from '../../corridor/common-schema.ts';
import { InstanceShape } from '../instance-shape.ts';
import { PoolSourceChangeFields, PoolSourceFields, RecordedPoolFields } from './source-schema.ts';

export const PoolPath: PathParams<{ name: string }> = {
  schema: z.object({
    name: z.string().refine(isDnsLabel).describe("Name of one of the caller's pools."),
  }),
  otherwise: ({ name = '' }) => poolNotFound(name),
  names: { name: 'pool' },
};

export const replicas = z.int().min(0).max(10_000);

export const UpdateStrategyFields = {
  autoUpdate: z
    .boolean()
    .describe(
      'Whether a change replaces idle instances automatically. If not, they are replaced by ' +
        'sync-template.',
    ),
  maxUnavailable: z
    .string()
    .regex(
      MAX_UNAVAILABLE_PATTERN,
      'must be a string with a number, or with a percentage up to 100%, such as "2" or "25%"',
    )
    .describe(
      'How many of the desired unclaimed instances may be missing, starting or unavailable ' +
        'during a rollout, as a number or percentage. At least 1.',
    ),
};

export const PoolScaleFields = {
  replicas,
  minReplicas: maybe(replicas),
  maxReplicas: maybe(replicas),
};

export const Labels = textMap(1_024);
export const Annotations = textMap(4_096);
export const DATA = 'At most 64. Sandpool does not interpret them.';

const spec = {
  ...PoolSourceFields,
  access: maybe(access),
  replicas: maybe(replicas).describe(
    'See [what replicas counts](decisions/0003-what-replicas-counts.md). Default for a new ' +
      'pool: 1, or the nearest value within the bounds.',
  ),
  minReplicas: PoolScaleFields.minReplicas.describe('Lower bound of `replicas`.'),
  maxReplicas: PoolScaleFields.maxReplicas.describe('Upper bound of `replicas`.'),
  updateStrategy: maybe(
    z.object({
      autoUpdate: maybe(UpdateStrategyFields.autoUpdate),
      maxUnavailable: maybe(UpdateStrategyFields.maxUnavailable),
    }),
  ),
};

export const CreatePoolBody = z.object({
  name: name.describe('A DNS label.'),
  clusterID: maybe(name).describe(
    'One of `GET /clusters`, on which the pool is created. Default: the cluster that ' +
      'receives the request.',
  ),
  ...spec,
  labels: Labels.default({}).describe(DATA),
  annotations: Annotations.default({}).describe(DATA),
});

const specWithLabels = z.object({
  ...spec,
  labels: maybe(Labels),
  annotations: maybe(Annotations),
});
export type PoolSpecBody = z.infer<typeof specWithLabels>;

export const UpdatePoolBody = z.object({
  ...spec,
  ...PoolSourceChangeFields,
  access: unsettable(spec.access),
  minReplicas: unsettable(spec.minReplicas),
  maxReplicas: unsettable(spec.maxReplicas),
  updateStrategy: unsettable(
    maybe(
      z.object({
        autoUpdate: unsettable(maybe(UpdateStrategyFields.autoUpdate)),
        maxUnavailable: unsettable(maybe(UpdateStrategyFields.maxUnavailable)),
      }),
    ),
  ),
  labels: unsettable(maybe(Labels)).describe(`Replaces the existing ones. ${DATA}`),
  annotations: unsettable(maybe(Annotations)).describe(`Replaces the existing ones. ${DATA}`),
});
export type PoolChangeBody = z.infer<typeof UpdatePoolBody>;

export const PoolListQuery = z.object({
  clusterID,
  all: maybe(flag).describe('Pools of all tenants. Only for admins.'),
  phase: maybe(z.enum(POOL_PHASES)).describe('Only pools in this phase.'),
  limit,
  offset,
});
export const DeletePoolQuery = z.object({
  force: flag
    .default(false)
    .describe('Also end its running sandboxes. `?force` without a value means true.'),
});

const PoolCondition = z
  .object({
    type: z.enum(POOL_CONDITIONS),
    status: z.enum(['True', 'False']),
    reason: z.string().describe('For programs, in CamelCase.'),
    message: z.string().describe('For people. May be empty.'),
    lastTransitionTime: timestamp.describe('When the status last changed.'),
  })
  .meta({
    id: 'PoolCondition',
    description:
      '`Progressing` while unclaimed instances of older revisions are being replaced; its ' +
      'reason is `RolloutBlocked` while the new revision fails to start. `Degraded` while ' +
      'starts fail or instances are unavailable, and while instances cannot start: ' +
      '`Unschedulable`, `ImageUnavailable`, `ContainerNotCreated`, with the message of the ' +
      'scheduler or kubelet. `TemplateResolved` is false while a change of the template, or ' +
      'of something that the pool names, cannot be applied; the pool keeps its previous ' +
      'definition.',
  });

/** The template name is shown as an annotation. */
const { templateName: _inAnnotations, ...shownSource } = RecordedPoolFields;

const size = z.object({ cpu: z.string(), memory: z.string() });

const EmbeddedTemplate = z.object({
  containers: z.array(
    z.object({
      name: z.string(),
      image: z.string(),
      command: z.array(z.string()).describe('Command with its arguments.'),
      workingDir: z.string(),
      env: z
        .array(z.object({ name: z.string() }))
        .describe('Names only, because values may be secrets.'),
      resources: z.object({ limits: size, requests: maybe(size) }),
    }),
  ),
  network: z.enum(['none', 'host']),
  endpoints: maybe(
    z.array(z.object({ name: z.string(), port: z.int(), scheme: z.enum(['http', 'https']) })),
  ),
  startupTimeout: z.string(),
  idleTimeout: z.string(),
  maxLifetime: z.string(),
});
export type EmbeddedTemplateWire = z.infer<typeof EmbeddedTemplate>;

export const PoolShape = z
  .object({
    name: z.string(),
    namespace: z.string(),
    cpu: z.string().describe('CPU of each instance.'),
    memory: z.string().describe('Memory of each instance.'),
    ...InstanceShape,
    team: z.string().describe('Team of the owner.'),
    user: z.string().describe('User who owns the pool.'),
    templateVersion: maybe(z.string()).describe(
      'Version of the template for new instances. For an inline template, ' +
        '`status.updateRevision`.',
    ),
    createdAt: timestamp,
    labels: z.record(z.string(), z.string()),
    annotations: z
      .record(z.string(), z.string())
      .describe('`sandpool.dev/template-name` is the name of the template.'),
    spec: z
      .object({
        replicas: z.int().describe('Desired number of instances.'),
        minReplicas: maybe(z.int()),
        maxReplicas: maybe(z.int()),
        access: maybe(access).describe('Absent if it is `user`.'),
        updateStrategy: maybe(z.object(UpdateStrategyFields)).describe(
          'Absent if it is the default: `autoUpdate`, and 25%.',
        ),
        ...shownSource,
      })
      .describe("The owner's settings, unchanged."),
    status: z.object({
      phase: z.enum(POOL_PHASES),
      idleReplicas: z.int().describe('Instances that are ready to claim.'),
      unavailableIdleReplicas: z
        .int()
        .describe('Instances that were ready, and are not ready now.'),
      runningReplicas: z.int().describe('Claimed instances.'),
      startingReplicas: z.int(),
      stoppingReplicas: z.int(),
      failedReplicas: z.int().describe('Unclaimed instances that died and are not cleaned up yet.'),
      updateRevision: z
        .string()
        .describe(
          'Revision for new instances. Instances of the same revision have the same definition.',
        ),
      updatedReplicas: z
        .int()
        .describe('Instances of this revision that are starting, idle, unavailable or running.'),
      outdatedReplicas: z
        .int()
        .describe('Unclaimed instances of older revisions, which a rollout replaces.'),
      observedTemplateVersion: maybe(z.string()).describe(
        'Latest template version that the pool has tried to apply. If that failed, ' +
          '`TemplateResolved` gives the reason. Absent for an inline template.',
      ),
      template: maybe(EmbeddedTemplate).describe(
        "Definition of new instances: the template with the pool's size and overrides. " +
          'Absent in lists.',
      ),
      conditions: z.array(PoolCondition),
    }),
  })
  .meta({
    id: 'Pool',
    description: `
The counts are exact. Phase: \`Pending\` not yet full since the daemon started · \`Ready\` all
instances exist · \`Scaling\` instances are starting or ending · \`Degraded\` some instances are
unavailable, starts fail while some instances are usable, or starts cannot succeed at present ·
\`Failed\` starts fail and no instance is usable · \`Updating\` unclaimed instances of older
revisions are being replaced, within \`maxUnavailable\` · \`Deleting\`.`.trim(),
  });

export const PoolEnvelope = z.object({ template: PoolShape }).meta({ id: 'PoolEnvelope' });
export const PoolSyncPreview = z
  .object({
    specYaml: z.string().describe('The definition that sync-template would apply.'),
    version: z
      .string()
      .describe('Version of the template. For an inline template, a hash of the definition.'),
  })
  .meta({ id: 'PoolSyncPreview' });
export const PoolPage = pageOf(PoolShape).meta({ id: 'PoolPage' });
export const PoolDeletion = z
  .object({ name: z.string(), namespace: z.string(), status: z.literal('Deleting') })
  .meta({ id: 'PoolDeletion' });

export type PoolWire = z.infer<typeof PoolShape>;
export type PoolSyncPreviewWire = z.infer<typeof PoolSyncPreview>;
export type PoolDeletionWire = z.infer<typeof PoolDeletion>;
