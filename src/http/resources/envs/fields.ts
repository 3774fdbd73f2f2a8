import { z } from 'zod';
import { ENV_MODES, MOST_GROUPS, MOST_MEMBERS } from '../../../model/envs/env.ts';
import { cpuAmount, memoryAmount } from '../../../model/templates/template.ts';
import { AutoscalingGroupFields } from './group-schema.ts';
import { MAX_REFERENCE, access, maybe, name, text } from '../../corridor/common-schema.ts';
import { ImagePullSecret, PublicOverrides } from '../pools/source-schema.ts';
import { Annotations, DATA, Labels, replicas, UpdateStrategyFields } from '../pools/schema.ts';

export const PartialUpdateStrategy = z.object({
  autoUpdate: maybe(UpdateStrategyFields.autoUpdate),
  maxUnavailable: maybe(UpdateStrategyFields.maxUnavailable),
});

/** Without secrets, for records. */
export const RecordedOverrides = PublicOverrides.extend({
  updateStrategy: maybe(PartialUpdateStrategy).describe(
    'Update strategy of members without their own.',
  ),
});

/** For requests: with the write-only registry passwords. */
export const GivenOverrides = RecordedOverrides.extend({
  imagePullSecret: maybe(ImagePullSecret).describe('Write-only. Replaces the previous value.'),
});

export const TemplateRefFields = z.object({
  name: text(MAX_REFERENCE, 1).describe('One of the [templates](templates.md).'),
  version: maybe(
    z
      .string()
      .regex(/^[1-9][0-9]{0,14}$/, 'must be a version of the template, such as 3')
      .meta({ maxLength: 15 }),
  ).describe('Pins the env to this version. If absent, the env follows the template.'),
});

export const Mode = z.enum(ENV_MODES);
export const EnvDocs = text(65_536).describe(
  'Documentation for people, in plain text or Markdown.',
);

const Amounts = z.object({ cpu: maybe(cpuAmount), memory: maybe(memoryAmount) });
const priority = z.int().min(-1_000).max(1_000);

export const MemberConfigFields = {
  labels: maybe(Labels).describe(DATA),
  annotations: maybe(Annotations).describe(DATA),
  instanceType: maybe(name).describe(
    'One of `GET /instancetypes`, for the size of the first container.',
  ),
  multiplier: maybe(z.number().min(0.01).max(1_000)).describe(
    'Multiplier of the instance type, at most its `maxMultiplier`.',
  ),
  inlineResources: maybe(z.object({ requests: maybe(Amounts), limits: maybe(Amounts) })).describe(
    'Resources of the first container. Takes precedence over the instance type. A request ' +
      'without a limit leaves the limit unchanged, or raises it to the request.',
  ),
  scalingGroup: maybe(name).describe(
    'Autoscaling group that sizes the member. Default for a new member: a group with the ' +
      "member's name.",
  ),
  minReplicas: maybe(replicas).describe(
    'Lower bound of the member, in addition to the bounds of its group.',
  ),
  maxReplicas: maybe(replicas).describe(
    'Upper bound of the member, in addition to the bounds of its group.',
  ),
  priority: maybe(priority).describe(
    'Within a group, members with a higher priority grow first and shrink last. Default: 0.',
  ),
  scaleUpPriority: maybe(priority).describe(
    'Members with a higher value grow first. Default: `priority`.',
  ),
  scaleDownPriority: maybe(priority).describe(
    'Members with a higher value shrink first. Default: minus `priority`.',
  ),
  updateStrategy: maybe(PartialUpdateStrategy).describe(
    "Takes precedence over the update strategy in the env's overrides.",
  ),
};

export const EnvSpecFields = {
  access: maybe(access),
  templateRef: TemplateRefFields,
  mode: Mode.default('WarmPool'),
  labels: Labels.default({}).describe(DATA),
  annotations: Annotations.default({}).describe(DATA),
  envDocs: maybe(EnvDocs),
  overrides: RecordedOverrides.default({}).describe('Differences from the template.'),
  members: z
    .array(
      z.object({
        name,
        clusterID: maybe(name).describe('Default: the local cluster.'),
        replicas: replicas.default(1).describe('Initial size of its pool.'),
        config: z.object(MemberConfigFields).default({}),
      }),
    )
    .max(MOST_MEMBERS)
    .default([]),
  groups: z.array(z.object(AutoscalingGroupFields)).max(MOST_GROUPS).default([]),
};
