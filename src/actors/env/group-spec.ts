import { NO_MEMORY } from '../../machines/autoscaling/memory.ts';
import type { GroupSpec, GroupWords } from '../../machines/autoscaling/group-events.ts';
import type { AutoscalingGroup } from '../../model/envs/autoscaling-group.ts';
import type { EnvRecord } from '../../model/envs/env.ts';
import { getOwn } from '../../lib/plain-data.ts';

export const groupSpecOf = (env: EnvRecord, group: AutoscalingGroup): GroupSpec => ({
  group,
  rules: env.members
    .filter(({ config, deleting }) => config.scalingGroup === group.name && deleting === false)
    .map(({ name, config }) => ({
      name,
      minReplicas: config.minReplicas ?? 0,
      maxReplicas: config.maxReplicas ?? group.maxReplicas,
      scaleUpPriority: config.scaleUpPriority ?? config.priority ?? 0,
      scaleDownPriority: config.scaleDownPriority ?? 0 - (config.priority ?? 0),
    })),
  memory: { ...NO_MEMORY, ...getOwn(env.scaling, group.name) },
});

export const isSameSpec = (one: GroupWords, other: GroupWords): boolean =>
  JSON.stringify([one.group, one.rules]) === JSON.stringify([other.group, other.rules]);
