import { z } from 'zod';
import { SCALE_UP_MODES } from '../../../model/envs/autoscaling-group.ts';
import { SCALING_CAUSES, TROUBLE_REASONS } from '../../../model/envs/scaling-decision.ts';
import { maybe, name, timestamp } from '../../corridor/common-schema.ts';
import { replicas } from '../pools/schema.ts';

/** More than a day is probably a unit error. */
const seconds = (most = 86_400) => z.int().min(0).max(most);

const upFields = {
  mode: z
    .enum(SCALE_UP_MODES)
    .describe('How fast the group grows: `Conservative` costs least, `Aggressive` waits least.'),
  cooldownSeconds: seconds().describe(
    'Minimum time between two scale-ups. The group reaches `minReplicas`, and adds an ' +
      'instance for each waiting claim, without this delay.',
  ),
  idleThresholdSeconds: seconds().describe(
    'How long too few instances must be idle before the group grows.',
  ),
  idleZeroQuietWindowSeconds: seconds().describe(
    'If no instance is idle, the group grows only if a claim came within this time. 0: it ' +
      'always grows.',
  ),
  saturationCooldownSeconds: seconds().describe(
    'How long a member that could not grow is skipped.',
  ),
};
const downFields = {
  idleTimeoutSeconds: seconds().describe(
    'Instances that were idle for this long are surplus. 0: the group never scales down.',
  ),
  stabilizationSeconds: seconds(3_600).describe(
    'The group shrinks to the largest size that it wanted within this time.',
  ),
  protectionWindowSeconds: seconds().describe(
    'No scale-down for this long after a scale-up. Instances younger than this are kept.',
  ),
};

export const AutoscalingGroupFields = {
  name,
  enabled: z
    .boolean()
    .describe('`false`: the members keep their sizes, and you set the `replicas` of their pools.'),
  minReplicas: replicas.describe('Minimum size of all its members together.'),
  maxReplicas: replicas.describe('Maximum size of all its members together.'),
  scaleUpPolicy: z.object(upFields),
  scaleDownPolicy: z.object(downFields),
};

const { name: _name, ...editable } = AutoscalingGroupFields;
export const EditableGroup = z.object(editable).meta({ id: 'EditableAutoscalingGroup' });
export const AutoscalingGroupShape = z
  .object(AutoscalingGroupFields)
  .meta({ id: 'AutoscalingGroup' });

export const UpdateGroupBody = z.object({
  enabled: maybe(AutoscalingGroupFields.enabled),
  minReplicas: maybe(AutoscalingGroupFields.minReplicas),
  maxReplicas: maybe(AutoscalingGroupFields.maxReplicas),
  scaleUpPolicy: maybe(
    z.object({
      mode: maybe(upFields.mode),
      cooldownSeconds: maybe(upFields.cooldownSeconds),
      idleThresholdSeconds: maybe(upFields.idleThresholdSeconds),
      idleZeroQuietWindowSeconds: maybe(upFields.idleZeroQuietWindowSeconds),
      saturationCooldownSeconds: maybe(upFields.saturationCooldownSeconds),
    }),
  ),
  scaleDownPolicy: maybe(
    z.object({
      idleTimeoutSeconds: maybe(downFields.idleTimeoutSeconds),
      stabilizationSeconds: maybe(downFields.stabilizationSeconds),
      protectionWindowSeconds: maybe(downFields.protectionWindowSeconds),
    }),
  ),
});

export const GroupEnvelope = z
  .object({ group: AutoscalingGroupShape, editable: EditableGroup })
  .meta({ id: 'AutoscalingGroupEnvelope' });
export const GroupList = z
  .object({ items: z.array(AutoscalingGroupShape), total: z.int() })
  .meta({ id: 'AutoscalingGroupList' });
export const GroupDeletion = z
  .object({ name: z.string(), status: z.literal('deleted') })
  .meta({ id: 'AutoscalingGroupDeletion' });

const counts = {
  desired: z.int(),
  running: z.int(),
  idle: z.int(),
  starting: z.int().describe('Missing instances that are expected to start.'),
  pendingRequests: z
    .int()
    .describe('Waiting claims, and users without an instance since their last refused claim.'),
};
const changeFields = {
  member: z.string(),
  from: z.int(),
  to: z.int(),
  outcome: z
    .enum(['done', 'overtaken', 'refused'])
    .describe("`overtaken`: the pool's size had changed in the meantime, and was left unchanged."),
  refusedFor: maybe(z.enum(TROUBLE_REASONS)),
};
export const ScalingDecisionShape = z
  .object({
    id: z.int().describe('Higher than the ids of earlier decisions.'),
    at: timestamp,
    cause: z
      .enum(SCALING_CAUSES)
      .describe(
        '`demand`: claims; `surplus`: too many instances were idle for too long; `limits`: ' +
          'bounds were enforced; `failure`: instances failed to start.',
      ),
    seen: z.object(counts).describe('Sums over all members.'),
    wanted: z.int().describe('Size by demand, before limits.'),
    changes: z
      .array(z.object(changeFields))
      .describe(
        'Changes of members. Empty if the group could not grow, which is listed once for each ' +
          'reason.',
      ),
    reason: z.string().describe('For people.'),
    limitedBy: z.array(z.string()).describe('Reasons why the size is not larger.'),
  })
  .meta({ id: 'ScalingDecision' });
export const ScalingDecisionList = z
  .object({ items: z.array(ScalingDecisionShape), total: z.int() })
  .meta({ id: 'ScalingDecisionList' });

export type ScalingDecisionWire = z.infer<typeof ScalingDecisionShape>;
export type AutoscalingGroupWire = z.infer<typeof AutoscalingGroupShape>;
