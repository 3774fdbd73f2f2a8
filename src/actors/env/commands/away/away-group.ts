import { placeOf, type CopyMirror } from '../../copy-mirror.ts';
import type { GroupMembers } from '../../group-effects.ts';
import type { Clock } from '../../../../contracts/clock.ts';
import type { EnvCopies } from '../../../../contracts/fleet/env-copies.ts';
import type { AutoscalingGroup } from '../../../../model/envs/autoscaling-group.ts';
import { askedOf, copiedIn, countedOf } from '../../../../model/envs/env-copy.ts';
import type { EnvMember, EnvRecord } from '../../../../model/envs/env.ts';
import { Refusal } from '../../../../model/refusals.ts';
import type { ChangeOutcome } from '../../../../model/envs/scaling-decision.ts';

export interface AwayGroupDeps {
  readonly mirror: Pick<CopyMirror, 'seen' | 'watch'>;
  readonly copies: Pick<EnvCopies, 'read' | 'changeMember'>;
  readonly clusterId: string;
  readonly clock: Clock;
}

/** Excludes members never observed. */
export const observeAway = (
  { mirror, clusterId: local, clock }: Omit<AwayGroupDeps, 'copies'>,
  env: EnvRecord,
  { name: group, scaleDownPolicy: { protectionWindowSeconds } }: AutoscalingGroup,
): Awaited<ReturnType<GroupMembers['observe']>> =>
  env.members.flatMap((member) => {
    const { name, clusterId, config, deleting } = member;
    if (clusterId === local || config.scalingGroup !== group || deleting !== false) return [];
    const { copy, current = false, reachable = false } = mirror.seen(env.uid, clusterId) ?? {};
    const shown = copy && copiedIn(copy, name);
    if (!shown) return [];
    const copied = countedOf(shown, member);
    const watch = mirror.watch(env.uid, member);
    const now = clock.now();
    const trouble = reachable ? watch?.trouble(now) : undefined;
    return [
      {
        name,
        cluster: clusterId,
        asked: { most: askedOf(member), current },
        desired: copied.desired,
        running: copied.running,
        idle: copied.idle,
        unavailable: 0,
        settled: watch?.settled(protectionWindowSeconds * 1_000, now) ?? 0,
        pending: reachable ? copied.pending : 0,
        claimedAt: watch?.claimedAt ?? 0,
        quota: copied.headroom,
        reachable,
        ...(trouble ? { trouble } : {}),
        decided: 0,
      },
    ];
  });

/**
 * Conditional on `from`. A missing answer counts as overtaken; the next observation shows the
 * result.
 */
export const resizeAway = async (
  { copies }: Pick<AwayGroupDeps, 'copies'>,
  env: EnvRecord,
  { member, resize: { cause, from, to } }: { readonly member: EnvMember; readonly resize: Resize },
): Promise<ChangeOutcome> => {
  const place = placeOf(env, member.clusterId);
  try {
    const copy = await copies.read(place);
    const copied = copy && copiedIn(copy, member.name);
    if (copied?.desired === to) return { kind: 'done' };
    const takesRunning = cause !== 'limits' && to < from && to < (copied?.running ?? 0);
    if (!copy || copied?.desired !== from || takesRunning) return { kind: 'overtaken' };
    await copies.changeMember(place, member.name, { replicas: to, tag: copy.tag });
    return { kind: 'done' };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return error.code === 'QUOTA_EXCEEDED'
      ? { kind: 'refused', reason: 'quota' }
      : { kind: 'overtaken' };
  }
};

type Resize = Pick<Parameters<GroupMembers['resize']>[1], 'cause'> &
  Pick<Parameters<GroupMembers['resize']>[2], 'from' | 'to'>;
