import type { AutoscalingGroup, Env, ObservedMember, ScalingDecision } from '../client/wire.ts';
import { formatDuration } from '../../model/durations.ts';
import { pluralize } from './pluralize.ts';
import { changesText, membersOf } from './env-rows.ts';
import { printable } from '../common/printable.ts';
import { shortTime } from './rows.ts';

/** Newest decisions of each group first. */
export interface EnvStory {
  readonly env: Env;
  readonly decisions: ReadonlyMap<string, readonly ScalingDecision[]>;
}

const DECISIONS_TOLD = 3;

/** One sentence a line. */
export const explainEnv = ({ env, decisions }: EnvStory): string => {
  const {
    name,
    status,
    spec: { autoscaling },
  } = env;
  const members = membersOf(env);
  const now = Math.max(
    0,
    ...status.clusters.map(({ lastSnapshotTime = '' }) => Date.parse(lastSnapshotTime) || 0),
  );
  const alone = members.filter(({ scalingGroup }) => scalingGroup === undefined);
  const lines = [
    status.memberCount === 0
      ? `env ${name} has no members; add one: sandpool envs members add ${name}`
      : `env ${name} should have ${pluralize(status.desiredReplicas, 'instance')}: ` +
        `${status.runningReplicas} are running, ${status.idleReplicas} idle`,
    ...status.conditions
      .filter(
        ({ status: holds, type, message }) =>
          message !== '' &&
          (type === 'ScalingLimited'
            ? holds === 'True'
            : holds === 'False' && type !== 'Progressing'),
      )
      .map(({ message }) => `  ${message}`),
    ...autoscaling.groups.flatMap((group) => [
      '',
      ...groupLines({
        env: name,
        group,
        members: members.filter(({ scalingGroup }) => scalingGroup === group.name),
        decisions: decisions.get(group.name) ?? [],
        now,
      }),
    ]),
    ...alone.flatMap((member) => [
      '',
      `member ${member.name} is in no group: it keeps the ${member.desiredReplicas} replicas ` +
        'of its pool',
      ...memberLines(member, now),
    ]),
  ];
  return `${lines.map(printable).join('\n')}\n`;
};

interface GroupStory {
  readonly env: string;
  readonly group: AutoscalingGroup;
  readonly members: readonly ObservedMember[];
  readonly decisions: readonly ScalingDecision[];
  readonly now: number;
}

const groupLines = (story: GroupStory): readonly string[] => {
  const { group, members, decisions, now } = story;
  const {
    name,
    enabled,
    minReplicas,
    maxReplicas,
    scaleUpPolicy: { mode },
  } = group;
  if (members.length === 0) return [`group ${name} has no members`];
  if (!enabled)
    return [
      `group ${name} is off: its members keep their size`,
      ...members.flatMap((member) => memberLines(member, now)),
    ];
  return [
    `group ${name} sizes ${members.map((member) => member.name).join(', ')} to demand: ` +
      `${mode}, ${minReplicas} to ${maxReplicas}`,
    `  ${nowWords(members)}`,
    ...boundWords(story).map((line) => `  ${line}`),
    ...timeWords(story).map((line) => `  ${line}`),
    ...members.flatMap((member) => memberLines(member, now)),
    ...(decisions.length === 0
      ? ['  it has decided nothing yet']
      : decisions
          .slice(0, DECISIONS_TOLD)
          .map((decision, index) => `  ${decisionWords(decision, index === 0, now)}`)),
  ];
};

const nowWords = (members: readonly ObservedMember[]): string => {
  const sum = (of: (member: ObservedMember) => number): number =>
    members.reduce((total, member) => total + of(member), 0);
  const [desired, running, idle, waiting] = [
    sum((member) => member.desiredReplicas),
    sum((member) => member.runningCount),
    sum((member) => member.idleCount),
    sum((member) => member.pendingRequests),
  ];
  const asked = waiting === 0 ? '' : `; ${pluralize(waiting, 'claim')} waiting or refused`;
  return (
    `now it has ${desired}: ${running} running, ${idle} idle, ` +
    `${Math.max(0, desired - running - idle)} on the way${asked}`
  );
};

const boundWords = ({
  env,
  group: { name, minReplicas, maxReplicas },
  members,
}: GroupStory): readonly string[] => {
  const desired = members.reduce((total, member) => total + member.desiredReplicas, 0);
  if (desired >= maxReplicas)
    return [`that is its maximum; raise it: sandpool envs groups set ${env} ${name} --max N`];
  if (members.every(({ scaleUpHeadroom }) => scaleUpHeadroom === 0))
    return ['it can’t grow: none of its members may grow further'];
  return desired <= minReplicas ? ['that is its minimum'] : [];
};

const timeWords = ({
  group: { scaleUpPolicy: up, scaleDownPolicy: down },
  decisions,
  now,
}: GroupStory): readonly string[] => {
  const leftOf = (grew: ScalingDecision | undefined, seconds: number): number =>
    grew === undefined ? 0 : Date.parse(grew.at) + seconds * 1_000 - now;
  const [cooling, protecting] = [
    leftOf(coolingFrom(decisions), up.cooldownSeconds),
    leftOf(decisions.find(isGrowth), down.protectionWindowSeconds),
  ];
  return [
    ...(cooling > 0
      ? [
          `it is cooling down: it does not grow again for ${rounded(cooling)} ` +
            `(${inSeconds(up.cooldownSeconds)} in ` +
            `all)${up.mode === 'Aggressive' ? ', unless demand exceeds what is starting' : ''}`,
        ]
      : []),
    ...(protecting > 0
      ? [
          `no instance is removed for ${rounded(protecting)}: until ` +
            `${inSeconds(down.protectionWindowSeconds)} after the last growth`,
        ]
      : []),
    down.idleTimeoutSeconds === 0
      ? 'it never shrinks: its idle timeout is 0'
      : 'it removes instances that were idle for all of the last ' +
        `${inSeconds(down.idleTimeoutSeconds)}, down to the highest size that it wanted in the ` +
        `last ${inSeconds(down.stabilizationSeconds)}`,
  ];
};

/**
 * Starts the cooldown. Growth to a minimum and failed growth do not count: after these, another
 * member may grow at once.
 */
const coolingFrom = (decisions: readonly ScalingDecision[]): ScalingDecision | undefined => {
  const at = decisions.findIndex((decision) => isGrowth(decision) && decision.cause !== 'limits');
  const failed = decisions
    .slice(0, at + 1)
    .some(
      ({ cause, changes }) =>
        cause === 'failure' || changes.some(({ outcome }) => outcome === 'refused'),
    );
  return failed ? undefined : decisions[at];
};

const isGrowth = ({ changes }: ScalingDecision): boolean =>
  changes.some(({ from, to }) => to > from);

const memberLines = (
  { name, state, saturatedUntil }: ObservedMember,
  now: number,
): readonly string[] => {
  const left = saturatedUntil === undefined ? 0 : Date.parse(saturatedUntil) - now;
  if (left > 0)
    return [
      `  member ${name} is saturated: its last instances could not start, and it is skipped ` +
        `for ${rounded(left)}`,
    ];
  return state === 'Active' || state === 'Saturated' ? [] : [`  member ${name} is ${state}`];
};

const decisionWords = (decision: ScalingDecision, last: boolean, now: number): string => {
  const { at, reason, limitedBy } = decision;
  const ago = now - Date.parse(at);
  const when = ago >= 0 && ago < AGO_MS ? `${rounded(ago)} ago` : `at ${shortTime(at) ?? at}`;
  return (
    `${last ? 'last' : 'before that'}, ${when}: ` +
    `${decision.changes.length === 0 ? 'it could not grow' : changesText(decision)}: ` +
    `${reason}${limitedBy.length === 0 ? '' : `; not more: ${limitedBy.join('; ')}`}`
  );
};

/** Older moments are shown as a time. */
const AGO_MS = 86_400_000;

const rounded = (ms: number): string => inSeconds(Math.ceil(ms / 1_000));
const inSeconds = (seconds: number): string => formatDuration(seconds * 1_000);
