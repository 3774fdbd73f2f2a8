import { omitUndefined } from '../../../lib/plain-data.ts';
import type { History } from '../../../contracts/history.ts';
import type { AutoscalingGroup, GroupChange } from '../../../model/envs/autoscaling-group.ts';
import { wordRevisionOf, type EnvRecord } from '../../../model/envs/env.ts';
import { requireMatch } from '../../../model/if-match.ts';
import { groupNotFound, invalidArgument } from '../../../model/refusals.ts';
import type { EnvMirror } from '../../runtime/record-mirror.ts';
import { changeEnv, findEnv, findUsableEnv } from './find-env.ts';
import type { EnvOperations } from './env-operations.ts';

interface GroupDeps {
  readonly envs: EnvMirror;
}

/** Operation `GET /envs/{name}/autoscaling/groups`. */
export const listGroups =
  ({ envs }: GroupDeps): EnvOperations['listGroups'] =>
  async (caller, envName) =>
    (await findUsableEnv(envs, caller, envName)).groups;

/** Operation `GET /envs/{name}/autoscaling/groups/{groupName}`. */
export const getGroup =
  ({ envs }: GroupDeps): EnvOperations['getGroup'] =>
  async (caller, envName, groupName) => {
    const env = await findUsableEnv(envs, caller, envName);
    return { env, group: groupIn(env, groupName) };
  };

/** Operation `GET /envs/{name}/autoscaling/groups/{groupName}/decisions`; newest first. */
export const groupDecisions =
  ({
    envs,
    history,
  }: GroupDeps & {
    readonly history: Pick<History, 'decisionsOf'>;
  }): EnvOperations['groupDecisions'] =>
  async (caller, envName, groupName) => {
    const env = await findUsableEnv(envs, caller, envName);
    groupIn(env, groupName);
    return await history.decisionsOf({ envUid: env.uid, group: groupName });
  };

/**
 * Operation `PUT /envs/{name}/autoscaling/groups/{groupName}`. Durable when this resolves;
 * effective from the next evaluation.
 */
export const updateGroup =
  ({ envs }: GroupDeps): EnvOperations['updateGroup'] =>
  async (caller, { env: envName, group: groupName }, { ifMatch, ...change }) => {
    const before = await findEnv(envs, caller, envName);
    const standing = groupIn(before, groupName);
    requireMatch(ifMatch, wordRevisionOf(before));
    changed(standing, change);
    const env = await changeEnv(envs, before, (current) => {
      requireMatch(ifMatch, wordRevisionOf(current));
      const group = groupIn(current, groupName);
      return {
        ...current,
        groups: current.groups.map((each) => (each === group ? changed(group, change) : each)),
      };
    });
    return { env, group: groupIn(env, groupName) };
  };

/** Operation `DELETE /envs/{name}/autoscaling/groups/{groupName}`. Members keep their sizes. */
export const deleteGroup =
  ({ envs }: GroupDeps): EnvOperations['deleteGroup'] =>
  async (caller, envName, groupName) => {
    const before = await findEnv(envs, caller, envName);
    groupIn(before, groupName);
    await changeEnv(envs, before, (current) => withoutGroup(current, groupName));
  };

const groupIn = (env: EnvRecord, name: string): AutoscalingGroup => {
  const group = env.groups.find((each) => each.name === name);
  if (!group) throw groupNotFound();
  return group;
};

const changed = (
  group: AutoscalingGroup,
  { scaleUpPolicy, scaleDownPolicy, ...change }: GroupChange,
): AutoscalingGroup => {
  const next = {
    ...group,
    ...omitUndefined(change),
    scaleUpPolicy: { ...group.scaleUpPolicy, ...omitUndefined(scaleUpPolicy ?? {}) },
    scaleDownPolicy: { ...group.scaleDownPolicy, ...omitUndefined(scaleDownPolicy ?? {}) },
  };
  if (next.minReplicas > next.maxReplicas)
    throw invalidArgument('minReplicas', `must be at most maxReplicas, ${next.maxReplicas}`);
  return next;
};

const withoutGroup = (env: EnvRecord, name: string): EnvRecord => {
  const { [name]: _gone, ...scaling } = env.scaling;
  return {
    ...env,
    scaling,
    groups: env.groups.filter((group) => group.name !== name),
    members: env.members.map((member) => {
      if (member.config.scalingGroup !== name) return member;
      const { scalingGroup: _group, ...config } = member.config;
      return { ...member, config };
    }),
  };
};
