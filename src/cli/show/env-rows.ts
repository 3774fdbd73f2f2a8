import type { AutoscalingGroup, Env, ObservedMember, ScalingDecision } from '../client/wire.ts';
import { formatDuration } from '../../model/durations.ts';
import { type Column, shortTime, tableOf } from './rows.ts';
import { fields } from './table.ts';

export const envTable = (envs: readonly Env[], wide: boolean): string => tableOf(ENV, envs, wide);
export const groupTable = (groups: readonly AutoscalingGroup[], wide: boolean): string =>
  tableOf(GROUP, groups, wide);
export const decisionTable = (decisions: readonly ScalingDecision[], wide: boolean): string =>
  tableOf(DECISION, decisions, wide);
export const memberTable = (members: readonly ObservedMember[], wide: boolean): string =>
  tableOf(MEMBER, members, wide);

export const membersOf = ({ status }: Env): readonly ObservedMember[] =>
  status.clusters.flatMap(({ observedMembers }) => observedMembers);

export const envFields = (env: Env): string => {
  const {
    name,
    namespace,
    team,
    user,
    createdAt,
    spec: { templateRef, overrides },
    status,
  } = env;
  return fields([
    ['env', name],
    ['namespace', namespace],
    ['owner', `${team}/${user}`],
    ['created', shortTime(createdAt)],
    ['template', templateRef.name],
    ['template version', templateRef.version],
    ['members', status.memberCount],
    ['desired', status.desiredReplicas],
    ['idle', status.idleReplicas],
    ['running', status.runningReplicas],
    ...Object.entries(overrides).map(
      ([field, value]) =>
        [`override ${field}`, typeof value === 'string' ? value : JSON.stringify(value)] as const,
    ),
    ...conditionWords(env),
    ...Object.entries(env.labels).map(([label, value]) => [`label ${label}`, value] as const),
  ]);
};

export const conditionWords = ({
  status: { conditions },
}: Env): readonly (readonly [string, string])[] =>
  conditions
    .filter(({ message }) => message !== '')
    .map(
      ({ type, status, reason, message }) => [type, `${status}, ${reason}: ${message}`] as const,
    );

export const groupFields = ({
  name,
  enabled,
  minReplicas,
  maxReplicas,
  scaleUpPolicy: up,
  scaleDownPolicy: down,
}: AutoscalingGroup): string =>
  fields([
    ['group', name],
    ['enabled', enabled ? 'on' : 'off'],
    ['min', minReplicas],
    ['max', maxReplicas],
    ['mode', up.mode],
    ['cooldown', inSeconds(up.cooldownSeconds)],
    ['idle threshold', inSeconds(up.idleThresholdSeconds)],
    ['quiet window', inSeconds(up.idleZeroQuietWindowSeconds)],
    ['saturation cooldown', inSeconds(up.saturationCooldownSeconds)],
    [
      'idle timeout',
      down.idleTimeoutSeconds === 0 ? '0: never scales down' : inSeconds(down.idleTimeoutSeconds),
    ],
    ['stabilization', inSeconds(down.stabilizationSeconds)],
    ['protection', inSeconds(down.protectionWindowSeconds)],
  ]);

/** Such as `default from 4 to 8, big from 0 to 1 (refused: quota)`. */
export const changesText = ({ changes }: ScalingDecision): string =>
  changes.length === 0 ? 'none' : listText(changes);

const listText = (changes: ScalingDecision['changes']): string =>
  changes
    .map(
      ({ member, from, to, outcome, refusedFor }) =>
        `${member} from ${from} to ${to}` +
        (outcome === 'done'
          ? ''
          : ` (${outcome}${refusedFor === undefined ? '' : `: ${refusedFor}`})`),
    )
    .join(', ');

const inSeconds = (seconds: number): string => formatDuration(seconds * 1_000);

const ENV: readonly Column<Env>[] = [
  { heading: 'ENV', of: ({ name }) => name },
  {
    heading: 'READY',
    of: ({ status }) => status.conditions.find(({ type }) => type === 'Ready')?.status,
  },
  { heading: 'MEMBERS', of: ({ status }) => status.memberCount },
  { heading: 'DESIRED', of: ({ status }) => status.desiredReplicas },
  { heading: 'IDLE', of: ({ status }) => status.idleReplicas },
  { heading: 'RUNNING', of: ({ status }) => status.runningReplicas },
  { heading: 'TEMPLATE', of: ({ spec }) => spec.templateRef.name },
  { heading: 'VERSION', of: ({ spec }) => spec.templateRef.version, wide: true },
  { heading: 'NAMESPACE', of: ({ namespace }) => namespace, wide: true },
  { heading: 'OWNER', of: ({ team, user }) => `${team}/${user}`, wide: true },
  { heading: 'CREATED', of: ({ createdAt }) => shortTime(createdAt), wide: true },
];

const GROUP: readonly Column<AutoscalingGroup>[] = [
  { heading: 'GROUP', of: ({ name }) => name },
  { heading: 'ENABLED', of: ({ enabled }) => (enabled ? 'on' : 'off') },
  { heading: 'MODE', of: ({ scaleUpPolicy }) => scaleUpPolicy.mode },
  { heading: 'MIN', of: ({ minReplicas }) => minReplicas },
  { heading: 'MAX', of: ({ maxReplicas }) => maxReplicas },
  { heading: 'COOLDOWN', of: ({ scaleUpPolicy }) => inSeconds(scaleUpPolicy.cooldownSeconds) },
  {
    heading: 'IDLE-TIMEOUT',
    of: ({ scaleDownPolicy }) => inSeconds(scaleDownPolicy.idleTimeoutSeconds),
  },
  {
    heading: 'IDLE-THRESHOLD',
    of: ({ scaleUpPolicy }) => inSeconds(scaleUpPolicy.idleThresholdSeconds),
    wide: true,
  },
  {
    heading: 'QUIET-WINDOW',
    of: ({ scaleUpPolicy }) => inSeconds(scaleUpPolicy.idleZeroQuietWindowSeconds),
    wide: true,
  },
  {
    heading: 'SATURATION',
    of: ({ scaleUpPolicy }) => inSeconds(scaleUpPolicy.saturationCooldownSeconds),
    wide: true,
  },
  {
    heading: 'STABILIZATION',
    of: ({ scaleDownPolicy }) => inSeconds(scaleDownPolicy.stabilizationSeconds),
    wide: true,
  },
  {
    heading: 'PROTECTION',
    of: ({ scaleDownPolicy }) => inSeconds(scaleDownPolicy.protectionWindowSeconds),
    wide: true,
  },
];

const MEMBER: readonly Column<ObservedMember>[] = [
  { heading: 'MEMBER', of: ({ name }) => name },
  { heading: 'STATE', of: ({ state }) => state },
  { heading: 'IDLE', of: ({ idleCount }) => idleCount },
  { heading: 'RUNNING', of: ({ runningCount }) => runningCount },
  { heading: 'CURRENT', of: ({ currentReplicas }) => currentReplicas },
  { heading: 'DESIRED', of: ({ desiredReplicas }) => desiredReplicas },
  { heading: 'WAITING', of: ({ pendingRequests }) => pendingRequests },
  { heading: 'SATURATED-UNTIL', of: ({ saturatedUntil }) => shortTime(saturatedUntil) },
  {
    heading: 'GROUP',
    of: ({ scalingGroup, autoscalingEnabled }) =>
      scalingGroup === undefined || autoscalingEnabled ? scalingGroup : `${scalingGroup} (off)`,
  },
  { heading: 'HEADROOM', of: ({ scaleUpHeadroom }) => scaleUpHeadroom, wide: true },
  { heading: 'REVISION', of: ({ updateRevision }) => updateRevision, wide: true },
  { heading: 'UPDATED', of: ({ updatedReplicas }) => updatedReplicas, wide: true },
  { heading: 'TEMPLATE-VERSION', of: ({ templateVersion }) => templateVersion, wide: true },
  { heading: 'TYPE', of: ({ instanceType }) => instanceType, wide: true },
];

const DECISION: readonly Column<ScalingDecision>[] = [
  { heading: 'TIME', of: ({ at }) => shortTime(at) },
  { heading: 'CHANGE', of: changesText },
  { heading: 'REASON', of: ({ reason }) => reason },
  { heading: 'NOT-MORE', of: ({ limitedBy }) => limitedBy.join('; ') },
  { heading: 'WANTED', of: ({ wanted }) => wanted, wide: true },
  { heading: 'RUNNING', of: ({ seen }) => seen.running, wide: true },
  { heading: 'IDLE', of: ({ seen }) => seen.idle, wide: true },
  { heading: 'STARTING', of: ({ seen }) => seen.starting, wide: true },
  { heading: 'WAITING', of: ({ seen }) => seen.pendingRequests, wide: true },
];
