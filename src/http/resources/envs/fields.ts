import { z } from 'zod';
import { ENV_MODES, MOST_GROUPS, MOST_MEMBERS } from '../../../model/envs/env.ts';
import { cpuAmount, memoryAmount } from '../../../model/templates/template.ts';
import { AutoscalingGroupFields } from './group-schema.ts';
import { MAX_REFERENCE, access, maybe, name, text } from '../../corridor/common-schema.ts';
import { ImagePullSecret, PublicOverrides } from '../pools/source-schema.ts';
import { Annotations, DATA, Labels, replicas, UpdateStrategyFields } from '../pools/schema.ts';

/** Shared by requests and the custom resource. */
export const PartialUpdateStrategy = z.object({
  autoUpdate: maybe(UpdateStrategyFields.autoUpdate),
  maxUnavailable: maybe(UpdateStrategyFields.maxUnavailable),
});

/** Without secrets, for records. */
export const RecordedOverrides = PublicOverrides.extend({
  updateStrategy: maybe(PartialUpdateStrategy).describe(
    'Of the members that say nothing of it themselves.',
  ),
});

/** For requests: with the write-only registry passwords. */
export const GivenOverrides = RecordedOverrides.extend({
  imagePullSecret: maybe(ImagePullSecret).describe('Write-only; replaces what was given before.'),
});

export const TemplateRefFields = z.object({
  name: text(MAX_REFERENCE, 1).describe('One of the [templates](templates.md).'),
  version: maybe(
    z
      .string()
      .regex(/^[1-9][0-9]{0,14}$/, 'must be a version of the template, such as 3')
      .meta({ maxLength: 15 }),
  ).describe('Pins the env to this version; left out it follows the template.'),
});

export const Mode = z.enum(ENV_MODES);
export const EnvDocs = text(65_536).describe('For people, at length; as Markdown, if they like.');

const Amounts = z.object({ cpu: maybe(cpuAmount), memory: maybe(memoryAmount) });
const priority = z.int().min(-1_000).max(1_000);

export const MemberConfigFields = {
  labels: maybe(Labels).describe(DATA),
  annotations: maybe(Annotations).describe(DATA),
  instanceType: maybe(name).describe(
    'One of `GET /instancetypes`: the size of the first container.',
  ),
  multiplier: maybe(z.number().min(0.01).max(1_000)).describe(
    'Of the instance type; at most its `maxMultiplier`.',
  ),
  inlineResources: maybe(z.object({ requests: maybe(Amounts), limits: maybe(Amounts) })).describe(
    'Of the first container; counts before the instance type. A request alone leaves the ' +
      'limit as it is, or raises it to itself.',
  ),
  scalingGroup: maybe(name).describe(
    'The autoscaling group that sizes it; of a new member a group of its own name where ' +
      'it is left out.',
  ),
  minReplicas: maybe(replicas).describe("The member's own bounds, beside those of its group."),
  maxReplicas: maybe(replicas).describe("The member's own bounds, beside those of its group."),
  priority: maybe(priority).describe(
    'Of the members of a group the higher one grows first and shrinks last; 0 where unset.',
  ),
  scaleUpPriority: maybe(priority).describe('The higher one grows first; `priority` where unset.'),
  scaleDownPriority: maybe(priority).describe(
    'The higher one shrinks first; minus `priority` where unset.',
  ),
  updateStrategy: maybe(PartialUpdateStrategy).describe(
    "Counts before that of the env's overrides.",
  ),
};

/** Spec of the custom resource. */
export const EnvSpecFields = {
  access: maybe(access),
  templateRef: TemplateRefFields,
  mode: Mode.default('WarmPool'),
  labels: Labels.default({}).describe(DATA),
  annotations: Annotations.default({}).describe(DATA),
  envDocs: maybe(EnvDocs),
  overrides: RecordedOverrides.default({}).describe('What differs from the template.'),
  members: z
    .array(
      z.object({
        name,
        clusterID: maybe(name).describe('The local one where it is left out.'),
        replicas: replicas.default(1).describe('What its pool is made with.'),
        config: z.object(MemberConfigFields).default({}),
      }),
    )
    .max(MOST_MEMBERS)
    .default([]),
  groups: z.array(z.object(AutoscalingGroupFields)).max(MOST_GROUPS).default([]),
};
