import type { AutoscalingGroup } from '../../../model/envs/autoscaling-group.ts';
import type { EnvRecord, MemberConfig } from '../../../model/envs/env.ts';
import { getOwn } from '../../../lib/plain-data.ts';
import type { CompletedDecision } from '../../../model/envs/scaling-decision.ts';
import { accessField } from '../../../model/tenant.ts';
import type { TemplateSpec } from '../../../model/templates/template.ts';
import type { EnvView, MemberView, ObservedMember, PoolView } from '../../../actors/views.ts';
import type { AutoscalingGroupWire, ScalingDecisionWire } from './group-schema.ts';
import type { EnvEditableWire, EnvWire, MemberEnvelopeWire, NarrowEnvWire } from './schema.ts';
import { presentPool } from '../pools/presenter.ts';
import type { PoolWire } from '../pools/schema.ts';
import { presentCondition } from '../present-condition.ts';
import { timestampOf } from '../../corridor/common-schema.ts';

export const presentEnv = (view: EnvView): EnvWire => ({
  ...metaOf(view),
  spec: {
    ...specOf(view),
    overrides: overridesOf(view.record),
    clusters: clustersOf(view.record).map(({ clusterID, members }) => ({
      clusterID,
      members: members.map(({ name, config }) => ({ name, config: { ...config } })),
    })),
  },
  status: {
    ...totalsOf(view),
    clusters: clustersOf(view.record).map(({ clusterID }) => ({
      ...clusterOf(view, clusterID),
      observedMembers: observedIn(view, clusterID).map(presentMember),
    })),
  },
});

/** The older format, without newer overrides. */
export const presentNarrowEnv = (view: EnvView): NarrowEnvWire => {
  const {
    gateway: _gateway,
    envd: _envd,
    updateStrategy: _strategy,
    volumes: _volumes,
    ...overrides
  } = overridesOf(view.record);
  const narrow = ({ updateStrategy: _own, ...config }: MemberConfig) => config;
  return {
    ...metaOf(view),
    spec: {
      ...specOf(view),
      overrides,
      clusters: clustersOf(view.record).map(({ clusterID, members }) => ({
        clusterID,
        members: members.map(({ name, config }) => ({ name, config: narrow(config) })),
      })),
    },
    status: {
      ...totalsOf(view),
      clusters: clustersOf(view.record).map(({ clusterID }) => ({
        ...clusterOf(view, clusterID),
        observedMembers: observedIn(view, clusterID).map(presentNarrowMember),
      })),
    },
  };
};

export const presentEditable = ({
  record: { name, access, templateRef, mode, labels, annotations, ...record },
}: EnvView): EnvEditableWire => ({
  name,
  ...accessField(access),
  templateRef,
  mode,
  overrides: overridesOf(record),
  labels,
  annotations,
});

export const presentMemberEnvelope = ({ member, pool }: MemberView): MemberEnvelopeWire => ({
  template: presentMemberPool(pool, presentPool),
  editable: {
    name: member.name,
    clusterID: member.clusterId,
    replicas: replicasOf(pool, member),
    ...member.config,
  },
});

/** Another cluster's pool passes as received, with the cluster as prefix of its name. */
export const presentMemberPool = (
  pool: MemberView['pool'],
  present: (view: PoolView) => PoolWire,
): PoolWire =>
  'shown' in pool
    ? // a later version may send more fields
      ({ ...pool.shown, name: `${pool.clusterId}::${String(pool.shown['name'])}` } as PoolWire)
    : present(pool);

const replicasOf = (pool: MemberView['pool'], { replicas }: MemberView['member']): number => {
  if (!('shown' in pool)) return pool.record.replicas;
  const { spec } = pool.shown as { readonly spec?: { readonly replicas?: unknown } };
  return typeof spec?.replicas === 'number' ? spec.replicas : replicas;
};

export const presentGroup = ({
  name,
  enabled,
  minReplicas,
  maxReplicas,
  scaleUpPolicy,
  scaleDownPolicy,
}: AutoscalingGroup): AutoscalingGroupWire => ({
  name,
  enabled,
  minReplicas,
  maxReplicas,
  scaleUpPolicy: { ...scaleUpPolicy },
  scaleDownPolicy: { ...scaleDownPolicy },
});

export const presentGroupEnvelope = (group: AutoscalingGroup) => {
  const { name: _name, ...editable } = presentGroup(group);
  return { group: presentGroup(group), editable };
};

export const presentDecision = ({
  id,
  at,
  cause,
  seen: { pending, ...seen },
  wanted,
  changes,
  reason,
  limitedBy,
  outcomes,
}: CompletedDecision): ScalingDecisionWire => ({
  id,
  at: timestampOf(at),
  cause,
  seen: { ...seen, pendingRequests: pending },
  wanted,
  reason,
  limitedBy: [...limitedBy],
  changes: changes.map((change) => {
    const outcome = getOwn(outcomes, change.member);
    return {
      ...change,
      outcome: outcome?.kind ?? 'overtaken',
      refusedFor: outcome?.kind === 'refused' ? outcome.reason : undefined,
    };
  }),
});

const metaOf = ({ record, template }: EnvView) => ({
  name: record.name,
  namespace: record.owner.namespace,
  labels: record.labels,
  team: record.owner.team,
  user: record.owner.user,
  createdAt: timestampOf(record.createdAt),
  envDocs: record.envDocs,
  poolSizing: template?.document.spec.poolSizing,
});

const specOf = ({ record, template }: EnvView) => ({
  ...accessField(record.access),
  templateRef: record.templateRef,
  mode: record.mode,
  defaults: defaultsOf(template?.document.spec.defaults),
  autoscaling: { groups: record.groups.map(presentGroup) },
});

const defaultsOf = ({ instanceType, multiplier }: NonNullable<TemplateSpec['defaults']> = {}) => ({
  instanceType,
  multiplier,
});

const overridesOf = ({ overrides: { volumes, ...overrides } }: Pick<EnvRecord, 'overrides'>) => ({
  ...overrides,
  volumes: volumes ? [...volumes] : undefined,
});

const clustersOf = ({
  members,
}: EnvRecord): readonly { readonly clusterID: string; readonly members: EnvRecord['members'] }[] =>
  [...new Set(members.map(({ clusterId }) => clusterId))].map((clusterID) => ({
    clusterID,
    members: members.filter(({ clusterId }) => clusterId === clusterID),
  }));

const clusterOf = ({ clusterId, at, snapshots }: EnvView, clusterID: string) => {
  const isLocal = clusterID === clusterId;
  const seenAt = isLocal ? at : snapshots.get(clusterID);
  return {
    clusterID,
    isLocal,
    lastSnapshotTime: timestampOf(seenAt),
  };
};

const observedIn = ({ observed }: EnvView, clusterID: string): readonly ObservedMember[] =>
  observed.filter(({ clusterId }) => clusterId === clusterID);

const totalsOf = ({ record, observed, conditions }: EnvView) => ({
  conditions: conditions.map(presentCondition),
  scalingGroups: record.groups.map(({ name }) => {
    const own = observed.filter(({ config }) => config.scalingGroup === name);
    return {
      name,
      totalIdle: sum(own, 'idle'),
      totalRunning: sum(own, 'running'),
      totalDesired: sum(own, 'desired'),
    };
  }),
  memberCount: observed.length,
  desiredReplicas: sum(observed, 'desired'),
  runningReplicas: sum(observed, 'running'),
  idleReplicas: sum(observed, 'idle'),
});

const sum = (members: readonly ObservedMember[], count: 'idle' | 'running' | 'desired'): number =>
  members.reduce((total, member) => total + member[count], 0);

const presentNarrowMember = ({
  config: { instanceType, multiplier, scalingGroup },
  ...member
}: ObservedMember) => ({
  name: member.name,
  instanceType,
  multiplier,
  state: member.state,
  idleCount: member.idle,
  runningCount: member.running,
  desiredReplicas: member.desired,
  currentReplicas: member.current,
  scalingGroup,
  autoscalingEnabled: member.autoscaling,
  templateVersion: member.templateVersion,
});

const presentMember = (member: ObservedMember) => ({
  ...presentNarrowMember(member),
  pendingRequests: member.pending,
  saturatedUntil: timestampOf(member.saturatedUntil),
  scaleUpHeadroom: member.headroom,
  updateRevision: member.updateRevision,
  updatedReplicas: member.updated,
});
