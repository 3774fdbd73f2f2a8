import { z } from 'zod';
import { SCALE_UP_MODES } from '../../../model/envs/autoscaling-group.ts';
import { SCALING_CAUSES, TROUBLE_REASONS } from '../../../model/envs/scaling-decision.ts';
import { maybe, name, timestamp } from '../../corridor/common-schema.ts';
import { replicas } from '../pools/schema.ts';

/** At most a day. A longer time is probably a unit error. */
const seconds = (most = 86_400) => z.int().min(0).max(most);

const upFields = {
  mode: z.enum(SCALE_UP_MODES).describe('How eagerly it grows.'),
  cooldownSeconds: seconds().describe(
    'Least time between two scale-ups; what `minReplicas` is short of, and an instance ' +
      'for each claim that waits, is made at once.',
  ),
  idleThresholdSeconds: seconds().describe('How long too few must have been idle.'),
  idleZeroQuietWindowSeconds: seconds().describe(
    'With nothing idle it grows where a claim came in this time; 0: always.',
  ),
  saturationCooldownSeconds: seconds().describe(
    'For how long a member that could not grow is left out.',
  ),
};
const downFields = {
  idleTimeoutSeconds: seconds().describe(
    'What stayed idle for so long is surplus; 0: it never scales down.',
  ),
  stabilizationSeconds: seconds(3_600).describe(
    'It goes down to the highest size that it wanted in this time.',
  ),
  protectionWindowSeconds: seconds().describe(
    'No scale-down so soon after a scale-up, and no instance younger than this goes.',
  ),
};

/** Fields in the custom resource. */
export const AutoscalingGroupFields = {
  name,
  enabled: z
    .boolean()
    .describe("Off: its members keep their size, and their pools' `replicas` are yours."),
  minReplicas: replicas.describe('Over all its members together.'),
  maxReplicas: replicas.describe('Over all its members together.'),
  scaleUpPolicy: z.object(upFields),
  scaleDownPolicy: z.object(downFields),
};

const { name: _name, ...editable } = AutoscalingGroupFields;
export const EditableGroup = z.object(editable).meta({ id: 'EditableAutoscalingGroup' });
export const AutoscalingGroupShape = z
  .object(AutoscalingGroupFields)
  .meta({ id: 'AutoscalingGroup' });

/** A partial update; absent fields keep their value. */
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
  starting: z.int().describe('What should be there and is not, as far as it comes.'),
  pendingRequests: z.int().describe('Claims that waited, and users refused and not served since.'),
};
const changeFields = {
  member: z.string(),
  from: z.int(),
  to: z.int(),
  outcome: z
    .enum(['done', 'overtaken', 'refused'])
    .describe('`overtaken`: its size was another one meanwhile, and was left alone.'),
  refusedFor: maybe(z.enum(TROUBLE_REASONS)),
};
export const ScalingDecisionShape = z
  .object({
    id: z.int().describe('Grows from decision to decision.'),
    at: timestamp,
    cause: z
      .enum(SCALING_CAUSES)
      .describe(
        'Claims, too many idle for too long, bounds that were kept, or starts that failed.',
      ),
    seen: z.object(counts).describe('Over all members.'),
    wanted: z.int().describe('What there should be by demand; limits not regarded.'),
    changes: z
      .array(z.object(changeFields))
      .describe('Empty: the group could not grow; told once for each reason.'),
    reason: z.string().describe('In words.'),
    limitedBy: z.array(z.string()).describe('Why it is not more.'),
  })
  .meta({ id: 'ScalingDecision' });
export const ScalingDecisionList = z
  .object({ items: z.array(ScalingDecisionShape), total: z.int() })
  .meta({ id: 'ScalingDecisionList' });

export type ScalingDecisionWire = z.infer<typeof ScalingDecisionShape>;
export type AutoscalingGroupWire = z.infer<typeof AutoscalingGroupShape>;
