import { z } from 'zod';
import { ENV_CONDITIONS } from '../../../model/envs/env-condition.ts';
import { MEMBER_STATES } from '../../../model/envs/env.ts';
import { isDnsLabel } from '../../../model/identifiers.ts';
import { envNotFound, groupNotFound, memberNotFound } from '../../../model/refusals.ts';
import { IMAGE_POLICIES } from '../../../model/pools/pool-source.ts';
import { POOL_SIZINGS, startupTimeout, timeout } from '../../../model/templates/template.ts';
import type { PathParams } from '../../corridor/route.ts';
import { AutoscalingGroupShape } from './group-schema.ts';
import {
  access,
  clusterMadeHere,
  flag,
  limit,
  maybe,
  name,
  offset,
  pageOf,
  text,
  timestamp,
} from '../../corridor/common-schema.ts';
import {
  EnvDocs,
  GivenOverrides,
  MemberConfigFields,
  Mode,
  PartialUpdateStrategy,
  RecordedOverrides,
  TemplateRefFields,
} from './fields.ts';
import { ImagePullSecret, PublicOverrides } from '../pools/source-schema.ts';
import { Annotations, DATA, Labels, PoolShape, replicas } from '../pools/schema.ts';

export const EnvPath: PathParams<{ name: string }> = {
  schema: z.object({
    name: z.string().refine(isDnsLabel).describe("Name of one of the caller's envs."),
  }),
  otherwise: envNotFound,
};

export const MemberPath: PathParams<{ name: string; pool: string }> = {
  schema: z.object({
    name: z.string().refine(isDnsLabel).describe("Name of one of the caller's envs."),
    pool: z
      .string()
      .refine(isDnsLabel)
      .describe("Name of a member of the env, which is also its pool's name."),
  }),
  otherwise: memberNotFound,
  names: { pool: 'pool' },
};

export const GroupPath: PathParams<{ name: string; groupName: string }> = {
  schema: z.object({
    name: z.string().refine(isDnsLabel).describe("Name of one of the caller's envs."),
    groupName: z.string().refine(isDnsLabel).describe('Name of an autoscaling group of the env.'),
  }),
  otherwise: groupNotFound,
};

const shell = {
  access: maybe(access),
  templateRef: TemplateRefFields,
  overrides: GivenOverrides.default({}).describe('Differences from the template.'),
  labels: Labels.default({}).describe(DATA),
  annotations: Annotations.default({}).describe(DATA),
};

export const CreateEnvBody = z.object({
  name: name.describe('A DNS label.'),
  clusterID: clusterMadeHere,
  mode: Mode.default('WarmPool'),
  ...shell,
  envDocs: maybe(EnvDocs),
});
export const ReplaceEnvBody = z.object({
  name: maybe(z.string()).describe('Cannot change. If present, it must be the current value.'),
  mode: maybe(Mode).describe('Cannot change. If present, it must be the current value.'),
  ...shell,
});

const orNull = <T extends z.ZodType>(schema: T) => maybe(schema.nullable());
const { volumes } = PublicOverrides.shape;
const patchOverrides = z.object({
  image: orNull(text(512, 1)),
  podCreationImagePolicy: orNull(z.enum(IMAGE_POLICIES)),
  defaultStartupTimeout: orNull(startupTimeout),
  defaultIdleTimeout: orNull(timeout),
  gateway: orNull(z.object({ enabled: orNull(z.boolean()) })),
  envd: orNull(z.object({ verbose: orNull(z.boolean()) })),
  volumes: orNull(volumes.unwrap()),
  updateStrategy: orNull(
    z.object({
      autoUpdate: orNull(PartialUpdateStrategy.shape.autoUpdate.unwrap()),
      maxUnavailable: orNull(PartialUpdateStrategy.shape.maxUnavailable.unwrap()),
    }),
  ),
  imagePullSecretConfigured: orNull(z.boolean()).describe('Only in answers. Ignored in requests.'),
  imagePullSecret: orNull(ImagePullSecret).describe(
    'Write-only. Replaces the previous value; null removes it.',
  ),
});
const patchTexts = (longest: number) =>
  z.record(z.string().min(1).max(317), text(longest).nullable());

export const PatchEnvBody = z.object({
  overrides: orNull(patchOverrides),
  labels: orNull(patchTexts(1_024)),
  annotations: orNull(patchTexts(4_096)),
  envDocs: orNull(EnvDocs),
  access: orNull(access),
});

export const EnvListQuery = z.object({
  all: maybe(flag).describe('Envs of all tenants. Only for admins.'),
  limit,
  offset,
});
export const DeleteEnvQuery = z.object({
  force: flag
    .default(false)
    .describe('Also end its running sandboxes. `?force` without a value means true.'),
});

const memberSpec = {
  ...MemberConfigFields,
  replicas: maybe(replicas).describe(
    'Size of its pool. Default for a new member: 1, or the nearest value within its bounds.',
  ),
};
export const AddMemberBody = z.object({
  name: maybe(name).describe('Name of the member and of its pool. Generated if absent.'),
  clusterID: maybe(name).describe('One of `GET /clusters`. Default: the local cluster.'),
  ...memberSpec,
});
export const UpdateMemberBody = z.object(memberSpec);

const Member = z.object({ name: z.string(), config: z.object(MemberConfigFields) });

const EnvSpec = z.object({
  access: maybe(access).describe('Absent if it is `user`.'),
  templateRef: TemplateRefFields,
  mode: Mode,
  defaults: z
    .object({ instanceType: maybe(z.string()), multiplier: maybe(z.number()) })
    .describe('Size of members without their own, from the template.'),
  clusters: z.array(z.object({ clusterID: z.string(), members: z.array(Member) })),
  autoscaling: z.object({ groups: z.array(AutoscalingGroupShape) }),
  overrides: RecordedOverrides,
});

const observed = {
  name: z.string(),
  instanceType: maybe(z.string()),
  multiplier: maybe(z.number()),
  state: z.enum(MEMBER_STATES),
  idleCount: z.int(),
  runningCount: z.int(),
  desiredReplicas: z.int(),
  currentReplicas: z
    .int()
    .describe('Number of instances that are starting, idle, unavailable or running.'),
  scalingGroup: maybe(z.string()),
  autoscalingEnabled: z.boolean(),
  templateVersion: maybe(z.string()),
};
const ObservedMember = z
  .object({
    ...observed,
    pendingRequests: z
      .int()
      .describe(
        'Waiting claims, and users whose claim was refused because no instance was idle, ' +
          'and who have not got one since.',
      ),
    saturatedUntil: maybe(timestamp).describe(
      'The member cannot grow until this time. Absent if it can.',
    ),
    scaleUpHeadroom: z.int().describe('Number of replicas by which it may grow.'),
    updateRevision: maybe(z.string()),
    updatedReplicas: z.int(),
  })
  .meta({ id: 'ObservedMember' });

const cluster = <T extends z.ZodType>(member: T) =>
  z.object({
    clusterID: z.string(),
    isLocal: z.boolean(),
    lastSnapshotTime: maybe(timestamp).describe(
      'Time of this snapshot. Absent if the cluster has not answered since the manager started.',
    ),
    observedMembers: z.array(member),
  });

const EnvConditionShape = z
  .object({
    type: z.enum(ENV_CONDITIONS),
    status: z.enum(['True', 'False']),
    reason: z.string().describe('For programs, in CamelCase.'),
    message: z.string(),
    lastTransitionTime: timestamp.describe('When the status last changed.'),
  })
  .meta({ id: 'EnvCondition' });

const status = <T extends z.ZodType>(member: T) =>
  z.object({
    conditions: z.array(EnvConditionShape),
    clusters: z.array(cluster(member)),
    scalingGroups: z.array(
      z.object({
        name: z.string(),
        totalIdle: z.int(),
        totalRunning: z.int(),
        totalDesired: z.int(),
      }),
    ),
    memberCount: z.int(),
    desiredReplicas: z.int(),
    runningReplicas: z.int(),
    idleReplicas: z.int(),
  });

const meta = {
  name: z.string(),
  namespace: z.string(),
  labels: z.record(z.string(), z.string()),
  team: z.string(),
  user: z.string(),
  createdAt: timestamp,
  envDocs: maybe(z.string()),
  poolSizing: maybe(z.enum(POOL_SIZINGS)).describe('From the template.'),
};
export const EnvShape = z
  .object({ ...meta, spec: EnvSpec, status: status(ObservedMember) })
  .meta({ id: 'Env', description: 'Counts are those at the time of the request.' });

const { updateStrategy: _newer, ...narrowConfig } = MemberConfigFields;
const narrowOverrides = PublicOverrides.omit({ gateway: true, envd: true, volumes: true });
const NarrowEnv = z
  .object({
    ...meta,
    spec: EnvSpec.extend({
      overrides: narrowOverrides,
      clusters: z.array(
        z.object({
          clusterID: z.string(),
          members: z.array(z.object({ name: z.string(), config: z.object(narrowConfig) })),
        }),
      ),
    }),
    status: status(z.object(observed).meta({ id: 'NarrowObservedMember' })),
  })
  .meta({ id: 'NarrowEnv', description: 'An env in an older, narrower shape.' });

export const EnvEditable = z
  .object({
    name: z.string(),
    access: maybe(access),
    templateRef: TemplateRefFields,
    mode: Mode,
    overrides: RecordedOverrides,
    labels: z.record(z.string(), z.string()),
    annotations: z.record(z.string(), z.string()),
  })
  .meta({ id: 'EnvEditable', description: 'The body for PUT, with the current values.' });

export const EnvEnvelope = z
  .object({ env: EnvShape, editable: EnvEditable })
  .meta({ id: 'EnvEnvelope' });
export const NarrowEnvEnvelope = z.object({ env: NarrowEnv }).meta({ id: 'NarrowEnvEnvelope' });
export const EnvPage = pageOf(EnvShape).meta({ id: 'EnvPage' });
export const EnvDeletion = z
  .object({ name: z.string(), namespace: z.string(), status: z.literal('Deleting') })
  .meta({ id: 'EnvDeletion' });

const EditableMember = z
  .object({ name: z.string(), clusterID: z.string(), replicas: z.int(), ...MemberConfigFields })
  .meta({ id: 'EditableMember' });
export const MemberEnvelope = z
  .object({ template: PoolShape, editable: EditableMember })
  .meta({ id: 'MemberEnvelope' });
export const MemberList = z
  .object({ items: z.array(PoolShape), total: z.int() })
  .meta({ id: 'MemberList' });

export type EnvWire = z.infer<typeof EnvShape>;
export type NarrowEnvWire = z.infer<typeof NarrowEnv>;
export type EnvEditableWire = z.infer<typeof EnvEditable>;
export type MemberEnvelopeWire = z.infer<typeof MemberEnvelope>;
