import type { AutoscalingGroup } from '../../model/envs/autoscaling-group.ts';
import { getOwn } from '../../lib/plain-data.ts';
import type { GrowthLimit } from '../../model/envs/scaling-decision.ts';
import type { EnvCondition } from '../../model/envs/env-condition.ts';
import type { MemberConfig, MemberState, TemplateRef } from '../../model/envs/env.ts';
import type { MemberContext } from './member-events.ts';

type Word = Omit<EnvCondition, 'since'>;

export interface EnvConditionsInput {
  readonly deleting: boolean;
  readonly templateRef: TemplateRef;
  /** `kept`: the version that the env names still exists. */
  readonly template: { readonly found: boolean; readonly kept: boolean; readonly newest?: string };
  readonly members: readonly {
    readonly name: string;
    readonly state: MemberState;
    readonly synced: boolean;
    readonly trouble: MemberContext['trouble'];
    readonly moving: boolean;
    readonly config: MemberConfig;
  }[];
  readonly groups: readonly AutoscalingGroup[];
  /** Absent before the first evaluation. */
  readonly limits: Readonly<Record<string, readonly GrowthLimit[]>>;
  /** This replica leads, and then knows all problems. */
  readonly led: boolean;
  readonly saved: readonly EnvCondition[];
}

export const envConditionsOf = (input: EnvConditionsInput): readonly Word[] => [
  readinessOf(input),
  resolutionOf(input),
  syncOf(input),
  quotaOf(input),
  progressOf(input),
  limitOf(input),
];

const readinessOf = ({ deleting, members, template }: EnvConditionsInput): Word => {
  if (deleting) return no('Ready', 'Deleting', '');
  if (!template.found) return no('Ready', 'TemplateNotFound', '');
  const others = members.filter(
    ({ state }) => state !== 'Active' && state !== 'Saturated' && state !== 'Draining',
  );
  return others.length > 0
    ? no(
        'Ready',
        'MembersNotReady',
        others.map(({ name, state }) => `${name} is ${state}`).join(', '),
      )
    : yes('Ready', members.length === 0 ? 'NoMembers' : 'MembersReady', '');
};

const resolutionOf = ({
  templateRef: { name, version },
  template: { found, kept, newest },
}: EnvConditionsInput): Word => {
  if (!found)
    return no('TemplateResolved', 'TemplateNotFound', `there is no usable template ${name}`);
  if (!kept)
    return no(
      'TemplateResolved',
      'VersionNotKept',
      `version ${version ?? ''} of template ${name} is no longer stored`,
    );
  return version === undefined
    ? yes('TemplateResolved', 'Following', '')
    : yes(
        'TemplateResolved',
        'Pinned',
        `version ${version} of template ${name}, whose newest is ${newest ?? ''}`,
      );
};

const syncOf = ({ members }: EnvConditionsInput): Word => {
  const behind = members.filter(({ state, synced }) => state !== 'Draining' && !synced);
  return behind.length === 0
    ? yes('MembersSynced', 'AllSynced', '')
    : no(
        'MembersSynced',
        behind.find(({ trouble }) => trouble)?.trouble?.reason ?? 'Syncing',
        behind.map(({ name, trouble }) => `${name}${trouble ? `: ${trouble.why}` : ''}`).join('; '),
      );
};

const quotaOf = (input: EnvConditionsInput): Word => {
  const { members, led, saved } = input;
  const known = saved.find(({ type }) => type === 'QuotaOk');
  if (!led && known) return wordOf(known);
  const short = members.filter(({ trouble }) => trouble?.reason === 'QuotaExceeded');
  if (short.length > 0)
    return no('QuotaOk', 'QuotaExceeded', short.map(({ name }) => name).join(', '));
  return (
    growthLimitOf(input, { type: 'QuotaOk', status: 'False' }) ?? yes('QuotaOk', 'WithinQuota', '')
  );
};

/** Before the first evaluation, uses the limits that the last leader saved. */
const growthLimitOf = (
  { groups, limits, led, saved }: EnvConditionsInput,
  { type, status }: Pick<Word, 'type' | 'status'>,
): Word | undefined => {
  const known = saved.find((condition) => condition.type === type);
  const seen = groups
    .filter(({ enabled }) => enabled)
    .map(({ name }) => ({ name, limits: getOwn(limits, name) }));
  if (!led || seen.some((group) => group.limits === undefined))
    return known && GROWTH_LIMITS.has(known.reason) ? wordOf(known) : undefined;
  const found = seen.flatMap(({ name, limits: all = [] }) =>
    all
      .filter(({ reason }) => (reason === 'QuotaReached') === (type === 'QuotaOk'))
      .map(({ reason, message }) => ({ reason, message: `group ${name}: ${message}` })),
  );
  const [first] = found;
  return (
    first && {
      type,
      status,
      reason: first.reason,
      message: found
        .map(({ message }) => message)
        .join('; ')
        .slice(0, LONGEST_MESSAGE),
    }
  );
};

const GROWTH_LIMITS: ReadonlySet<string> = new Set<GrowthLimit['reason']>([
  'MaxReplicasReached',
  'QuotaReached',
  'MemberUnreachable',
  'MemberUnschedulable',
  'MemberStartFailures',
]);

const wordOf = ({ type, status, reason, message }: EnvCondition): Word => ({
  type,
  status,
  reason,
  message,
});

const progressOf = ({ members }: EnvConditionsInput): Word => {
  const moving = members.filter(
    (member) => member.moving || member.state === 'Draining' || member.state === 'Pending',
  );
  return moving.length === 0
    ? no('Progressing', 'Settled', '')
    : yes('Progressing', 'MembersMoving', moving.map(({ name }) => name).join(', '));
};

/** If bounds contradict each other, the members' `minReplicas` win. */
const limitOf = (input: EnvConditionsInput): Word => {
  const { groups, members } = input;
  const faults = groups.flatMap((group) => {
    const own = members
      .filter(({ config }) => config.scalingGroup === group.name)
      .map(({ config }) => config);
    const least = own.reduce((sum, { minReplicas = 0 }) => sum + minReplicas, 0);
    const most = own.reduce(
      (sum, { maxReplicas = Number.POSITIVE_INFINITY }) => sum + maxReplicas,
      0,
    );
    if (least > group.maxReplicas)
      return [
        `the members of ${group.name} need at least ${least}, but its maxReplicas is ` +
          `${group.maxReplicas}`,
      ];
    return own.length > 0 && most < group.minReplicas
      ? [
          `the members of ${group.name} can be at most ${most}, but its minReplicas is ` +
            `${group.minReplicas}`,
        ]
      : [];
  });
  if (faults.length > 0) return yes('ScalingLimited', 'BoundsContradict', faults.join('; '));
  return (
    growthLimitOf(input, { type: 'ScalingLimited', status: 'True' }) ??
    no('ScalingLimited', 'Unlimited', '')
  );
};

const LONGEST_MESSAGE = 1_024;

const yes = (type: Word['type'], reason: string, message: string): Word => ({
  type,
  status: 'True',
  reason,
  message: message.slice(0, LONGEST_MESSAGE),
});
const no = (type: Word['type'], reason: string, message: string): Word => ({
  type,
  status: 'False',
  reason,
  message: message.slice(0, LONGEST_MESSAGE),
});
