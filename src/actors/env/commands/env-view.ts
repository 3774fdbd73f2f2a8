import type { CopyMirror } from '../copy-mirror.ts';
import type { EnvMirror } from '../../runtime/record-mirror.ts';
import type { EnvConditions } from '../env-conditions.ts';
import type { MemberHost } from '../member-host.ts';
import type { PoolDemand } from '../../pool/pool-demand.ts';
import type { Supervisor } from '../../sandbox/supervisor.ts';
import type { Clock } from '../../../contracts/clock.ts';
import {
  askingMs,
  DEFAULT_SCALE_UP_POLICY,
  type AutoscalingGroup,
} from '../../../model/envs/autoscaling-group.ts';
import { copiedIn, type CopiedMember } from '../../../model/envs/env-copy.ts';
import { NO_INSTANCES } from '../../../model/pools/pool.ts';
import type { EnvRecord } from '../../../model/envs/env.ts';
import {
  amountsOfPool,
  roomFor,
  type SizedAmounts,
  type SizedResource,
} from '../../../model/pools/quota.ts';
import { tenantKey, type Tenant } from '../../../model/tenant.ts';
import type { QuotaLimits } from '../../pool/commands/quota-limits.ts';
import type { TemplateCatalog } from '../../pool/template-catalog.ts';
import type { EnvView, ObservedMember } from '../../views.ts';

export interface EnvViewDeps {
  readonly supervisor: Pick<Supervisor, 'pools'>;
  readonly envs: EnvMirror;
  readonly members: MemberHost;
  readonly demand: PoolDemand;
  readonly templates: TemplateCatalog;
  readonly clock: Clock;
  readonly clusterId: string;
  readonly quotaLimits: Pick<QuotaLimits, 'of'>;
  readonly conditions: Pick<EnvConditions, 'now'>;
  readonly copies?: Pick<CopyMirror, 'seen'>;
}

export const lookedAt = async (deps: EnvViewDeps, record: EnvRecord): Promise<EnvView> => {
  await deps.demand.look(
    record.members.flatMap(
      ({ name }) => deps.supervisor.pools.ofMember(record, name)?.record ?? [],
    ),
  );
  return envViewOf(deps, record);
};

/** Waiting claims are those of the last update. */
export const envViewOf = (
  deps: EnvViewDeps,
  record: EnvRecord,
  room = new OwnersRoom(deps),
): EnvView => {
  const template = deps.templates.get(record.templateRef.name);
  const left = room.of(record.owner);
  const observed = withHeadroom(record, observedMembers(deps, record), (name) => {
    const copied = copiedOf(deps, record, name);
    if (copied) return copied.headroom;
    const definition = deps.supervisor.pools.ofMember(record, name)?.record.definition;
    return definition ? roomFor(definition, left) : left.replicas;
  });
  return {
    record,
    observed,
    conditions: deps.conditions.now(record),
    at: deps.clock.now(),
    clusterId: deps.clusterId,
    snapshots: new Map(
      record.members.flatMap(({ clusterId }) => {
        const seen = deps.copies?.seen(record.uid, clusterId);
        return seen ? [[clusterId, seen.at] as const] : [];
      }),
    ),
    template,
  };
};

export const observedMembers = (
  deps: EnvViewDeps,
  record: EnvRecord,
): readonly Omit<ObservedMember, 'headroom'>[] =>
  record.members.map(({ name }) => observedOf(deps, record, name));

const copiedOf = (
  { copies }: Pick<EnvViewDeps, 'copies'>,
  env: EnvRecord,
  name: string,
): CopiedMember | undefined => {
  const clusterId = env.members.find((each) => each.name === name)?.clusterId ?? '';
  const copy = copies?.seen(env.uid, clusterId)?.copy;
  return copy && copiedIn(copy, name);
};

const observedOf = (
  deps: EnvViewDeps,
  env: EnvRecord,
  name: string,
): Omit<ObservedMember, 'headroom'> => {
  const snapshot = deps.members.member(env.uid, name);
  const member = env.members.find((each) => each.name === name);
  const config = member?.config ?? {};
  const group = env.groups.find((each) => each.name === config.scalingGroup);
  const saturatedUntil = snapshot?.fact.saturatedUntil ?? 0;
  return {
    name,
    clusterId: member?.clusterId ?? '',
    state: snapshot?.state ?? 'Pending',
    config,
    saturatedUntil: snapshot?.state === 'Saturated' ? saturatedUntil : undefined,
    autoscaling: group?.enabled === true,
    ...(copiedCounts(copiedOf(deps, env, name)) ??
      poolCounts(deps, snapshot?.fact.pool?.uid, { group, replicas: member?.replicas ?? 0 })),
  };
};

type Counts = Pick<
  ObservedMember,
  | 'idle'
  | 'running'
  | 'desired'
  | 'current'
  | 'pending'
  | 'updateRevision'
  | 'updated'
  | 'templateVersion'
>;

const copiedCounts = (copied: CopiedMember | undefined): Counts | undefined => {
  if (!copied) return undefined;
  const { idle, running, desired, current, pending, updateRevision, updated, templateVersion } =
    copied;
  return { idle, running, desired, current, pending, updateRevision, updated, templateVersion };
};

const poolCounts = (
  { supervisor, demand }: EnvViewDeps,
  poolUid: string | undefined,
  { group, replicas }: { readonly group: AutoscalingGroup | undefined; readonly replicas: number },
): Counts => {
  const pool = poolUid === undefined ? undefined : supervisor.pools.get(poolUid);
  const counts = pool?.counts ?? NO_INSTANCES;
  return {
    idle: counts.idle,
    running: counts.running,
    desired: pool?.record.replicas ?? replicas,
    current: counts.starting + counts.idle + counts.unavailable + counts.running,
    pending: pool
      ? demand.pending(pool.record.uid, askingMs(group?.scaleUpPolicy ?? DEFAULT_SCALE_UP_POLICY))
      : 0,
    updateRevision: pool?.record.updateRevision,
    templateVersion: pool?.record.templateVersion,
    updated: pool
      ? pool.updated.starting + pool.updated.idle + pool.updated.unavailable + pool.updated.running
      : 0,
  };
};

/**
 * Headroom: the least of the member's limit, its group's over all members, and the owner's quota.
 */
const withHeadroom = (
  { groups }: EnvRecord,
  members: readonly Omit<ObservedMember, 'headroom'>[],
  roomOf: (name: string) => number,
): readonly ObservedMember[] =>
  members.map((member) => {
    const {
      state,
      desired,
      config: { scalingGroup, minReplicas = 0, maxReplicas = Number.MAX_SAFE_INTEGER },
    } = member;
    if (state !== 'Active') return { ...member, headroom: 0 };
    const quota = roomOf(member.name);
    const group = groups.find(({ name }) => name === scalingGroup);
    const own = members.filter(
      ({ config }) => group !== undefined && config.scalingGroup === group.name,
    );
    const shared = group
      ? Math.max(
          group.maxReplicas,
          sumOf(own, ({ config }) => config.minReplicas ?? 0),
        ) - sumOf(own, (one) => one.desired)
      : quota;
    return {
      ...member,
      headroom: Math.max(0, Math.min(Math.max(minReplicas, maxReplicas) - desired, shared, quota)),
    };
  });

export class OwnersRoom {
  readonly #deps: Pick<EnvViewDeps, 'supervisor' | 'quotaLimits'>;
  readonly #left = new Map<string, SizedAmounts>();

  constructor(deps: Pick<EnvViewDeps, 'supervisor' | 'quotaLimits'>) {
    this.#deps = deps;
  }

  of(owner: Tenant): SizedAmounts {
    const key = tenantKey(owner);
    const left = this.#left.get(key) ?? this.#count(owner);
    this.#left.set(key, left);
    return left;
  }

  #count(owner: Tenant): SizedAmounts {
    const {
      supervisor: { pools },
      quotaLimits,
    } = this.#deps;
    const limits = quotaLimits.of(owner);
    const taken = pools.index.list(owner, 0, Number.POSITIVE_INFINITY).ids.flatMap((uid) => {
      const record = pools.get(uid)?.record;
      return record ? [amountsOfPool(record)] : [];
    });
    const left = (resource: SizedResource): number =>
      Math.max(0, limits[resource] - sumOf(taken, (amounts) => amounts[resource]));
    return { replicas: left('replicas'), cpu: left('cpu'), memory: left('memory') };
  }
}

const sumOf = <T>(all: readonly T[], of: (one: T) => number): number =>
  all.reduce((sum, one) => sum + of(one), 0);
