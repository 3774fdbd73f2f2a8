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
  schema: z.object({ name: z.string().refine(isDnsLabel).describe("A pool of the caller's.") }),
  otherwise: ({ name = '' }) => poolNotFound(name),
  names: { name: 'pool' },
};

export const replicas = z.int().min(0).max(10_000);

export const UpdateStrategyFields = {
  autoUpdate: z
    .boolean()
    .describe(
      'Whether changes reach idle instances by themselves; else they wait for sync-template.',
    ),
  maxUnavailable: z
    .string()
    .regex(
      MAX_UNAVAILABLE_PATTERN,
      'must be a string with a number, or with a percentage up to 100%, such as "2" or "25%"',
    )
    .describe(
      'How many of the unclaimed instances that there should be a rollout may leave away, ' +
        'starting or unavailable at a time; at least 1.',
    ),
};

/** Sizes that the pool's owner sets. */
export const PoolScaleFields = {
  replicas,
  minReplicas: maybe(replicas),
  maxReplicas: maybe(replicas),
};

export const Labels = textMap(1_024);
export const Annotations = textMap(4_096);
export const DATA = 'At most 64. Data, never interpreted.';

const spec = {
  ...PoolSourceFields,
  access: maybe(access),
  replicas: maybe(replicas).describe(
    'See [what replicas counts](decisions/0003-what-replicas-counts.md). Of a new pool 1, ' +
      'or what the bounds have nearest to it.',
  ),
  minReplicas: PoolScaleFields.minReplicas.describe('Bounds of `replicas`.'),
  maxReplicas: PoolScaleFields.maxReplicas.describe('Bounds of `replicas`.'),
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
    'One of `GET /clusters`: where it is made. Left out: on the cluster that is asked.',
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
  labels: unsettable(maybe(Labels)).describe(`Instead of those there are. ${DATA}`),
  annotations: unsettable(maybe(Annotations)).describe(`Instead of those there are. ${DATA}`),
});
export type PoolChangeBody = z.infer<typeof UpdatePoolBody>;

export const PoolListQuery = z.object({
  clusterID,
  all: maybe(flag).describe('Of every tenant. Admins alone.'),
  phase: maybe(z.enum(POOL_PHASES)).describe('In this phase alone.'),
  limit,
  offset,
});
export const DeletePoolQuery = z.object({
  force: flag.default(false).describe('End its running sandboxes too. `?force` alone is true.'),
});

const PoolCondition = z
  .object({
    type: z.enum(POOL_CONDITIONS),
    status: z.enum(['True', 'False']),
    reason: z.string().describe('A word in CamelCase.'),
    message: z.string().describe('Empty where there is nothing to say.'),
    lastTransitionTime: timestamp.describe('When the status last changed.'),
  })
  .meta({
    id: 'PoolCondition',
    description:
      '`Progressing` while unclaimed instances of older revisions are replaced; its ' +
      'reason is `RolloutBlocked` while the new revision fails to start. `Degraded` while ' +
      'starts fail or instances are unavailable, and where instances can not start as ' +
      'things are: `Unschedulable`, `ImageUnavailable`, `ContainerNotCreated`, with the ' +
      "scheduler's or kubelet's words. `TemplateResolved` is false while a change of the " +
      'template, or of what the pool names, can not be taken: the pool stays on what it ' +
      'has.',
  });

/** The template name is shown as an annotation. */
const { templateName: _inAnnotations, ...shownSource } = RecordedPoolFields;

const size = z.object({ cpu: z.string(), memory: z.string() });

/** The resolved template of a pool, with every default. */
const EmbeddedTemplate = z.object({
  containers: z.array(
    z.object({
      name: z.string(),
      image: z.string(),
      command: z.array(z.string()).describe('With its arguments.'),
      workingDir: z.string(),
      env: z
        .array(z.object({ name: z.string() }))
        .describe('By name alone: their values may be secrets.'),
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
    cpu: z.string().describe('Of each instance.'),
    memory: z.string().describe('Of each instance.'),
    ...InstanceShape,
    team: z.string().describe("The owner's."),
    user: z.string().describe("The owner's."),
    templateVersion: maybe(z.string()).describe(
      'Of the template that new instances are started from; where that is inline, ' +
        '`status.updateRevision`.',
    ),
    createdAt: timestamp,
    labels: z.record(z.string(), z.string()),
    annotations: z
      .record(z.string(), z.string())
      .describe("`sandpool.dev/template-name` is the template's name."),
    spec: z
      .object({
        replicas: z.int().describe('How many there should be.'),
        minReplicas: maybe(z.int()),
        maxReplicas: maybe(z.int()),
        access: maybe(access).describe('Left out where it is `user`.'),
        updateStrategy: maybe(z.object(UpdateStrategyFields)).describe(
          'Left out where it is the default: `autoUpdate`, and 25%.',
        ),
        ...shownSource,
      })
      .describe('What its owner asked for, as it was asked.'),
    status: z.object({
      phase: z.enum(POOL_PHASES),
      idleReplicas: z.int().describe('Ready to claim.'),
      unavailableIdleReplicas: z.int().describe('Were ready, and are not now.'),
      runningReplicas: z.int().describe('Claimed.'),
      startingReplicas: z.int(),
      stoppingReplicas: z.int(),
      failedReplicas: z.int().describe('Unclaimed ones that died, until they are cleared away.'),
      updateRevision: z
        .string()
        .describe('Of what new instances are started from: instances of one revision are alike.'),
      updatedReplicas: z
        .int()
        .describe('Those of that revision: starting, idle, unavailable or running.'),
      outdatedReplicas: z
        .int()
        .describe('Unclaimed ones of older revisions, which a rollout replaces.'),
      observedTemplateVersion: maybe(z.string()).describe(
        'Of the template that the pool was made of last, or could not be made of: then ' +
          '`TemplateResolved` says why. Left out where that is inline.',
      ),
      template: maybe(EmbeddedTemplate).describe(
        'What new instances are started from: the fields of the template as the pool took ' +
          'them over, with its size and overrides. Left out in lists.',
      ),
      conditions: z.array(PoolCondition),
    }),
  })
  .meta({
    id: 'Pool',
    description: `
The counts are exact. Phase: \`Pending\` not yet full since the daemon started · \`Ready\` all
there · \`Scaling\` instances start or go · \`Degraded\` some are unavailable, starts keep
failing while something is usable, or can not go on as things are · \`Failed\` starts keep
failing and nothing is usable · \`Updating\` unclaimed instances of older revisions are replaced,
within \`maxUnavailable\` · \`Deleting\`.`.trim(),
  });

export const PoolEnvelope = z.object({ template: PoolShape }).meta({ id: 'PoolEnvelope' });
export const PoolSyncPreview = z
  .object({
    specYaml: z.string().describe('What instances would be started from.'),
    version: z
      .string()
      .describe("The template's; of an inline template a hash of what would be applied."),
  })
  .meta({ id: 'PoolSyncPreview' });
export const PoolPage = pageOf(PoolShape).meta({ id: 'PoolPage' });
export const PoolDeletion = z
  .object({ name: z.string(), namespace: z.string(), status: z.literal('Deleting') })
  .meta({ id: 'PoolDeletion' });

export type PoolWire = z.infer<typeof PoolShape>;
export type PoolSyncPreviewWire = z.infer<typeof PoolSyncPreview>;
export type PoolDeletionWire = z.infer<typeof PoolDeletion>;
