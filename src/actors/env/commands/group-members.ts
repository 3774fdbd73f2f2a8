import type { GroupMembers } from '../group-effects.ts';
import type { PoolDemand } from '../../pool/pool-demand.ts';
import type { PoolSnapshot } from '../../pool/pool-snapshot.ts';
import type { Supervisor } from '../../sandbox/supervisor.ts';
import type { Clock } from '../../../contracts/clock.ts';
import type { Coordination } from '../../../contracts/coordination.ts';
import { askingMs, type AutoscalingGroup } from '../../../model/envs/autoscaling-group.ts';
import type { EnvRecord } from '../../../model/envs/env.ts';
import type { PoolRecord } from '../../../model/pools/pool.ts';
import { eachResource, roomFor, type QuotaAmounts } from '../../../model/pools/quota.ts';
import { Refusal } from '../../../model/refusals.ts';
import type {
  ChangeOutcome,
  ScalingChange,
  ScalingDecision,
} from '../../../model/envs/scaling-decision.ts';
import { tenantKey, type Tenant } from '../../../model/tenant.ts';
import { observeAway, resizeAway, type AwayGroupDeps } from './away/away-group.ts';
import type { QuotaLimits } from '../../pool/commands/quota-limits.ts';
import { Resizing } from '../../sandbox/commands/reservations.ts';

export interface GroupMembersDeps {
  readonly supervisor: Pick<Supervisor, 'pools' | 'index' | 'sandbox'>;
  readonly demand: PoolDemand;
  readonly coordination: Coordination;
  readonly quotaLimits: Pick<QuotaLimits, 'of'>;
  readonly clock: Clock;
  readonly away?: AwayGroupDeps;
}

/** Always within the owner's quota. */
export const groupMembers = (deps: GroupMembersDeps): GroupMembers => {
  const room = new Room(deps);
  return {
    observe: async (env, group) => {
      // autoscaling needs sizes that include running instances
      if (deps.supervisor.pools.semantics === 'idle') return [];
      await deps.demand.look(poolsOf(deps, env, group).map(({ record }) => record));
      const left = await room.left(env.owner);
      return [
        ...poolsOf(deps, env, group).map((pool) =>
          observed(deps, pool, { group, quota: left && roomFor(pool.record.definition, left) }),
        ),
        ...(deps.away ? observeAway(deps.away, env, group) : []),
      ];
    },
    resize: async (env, decision, change) => {
      const member = env.members.find(({ name }) => name === change.member);
      if (deps.away && member && member.clusterId !== deps.away.clusterId)
        return await resizeAway(deps.away, env, { member, resize: { ...decision, ...change } });
      const pool = deps.supervisor.pools.ofMember(env, change.member)?.record;
      if (!pool) return { kind: 'overtaken' };
      try {
        return await resized(deps, pool, sizing(env, decision, change));
      } finally {
        room.changed(env.owner);
      }
    },
  };
};

type Observation = Awaited<ReturnType<GroupMembers['observe']>>[number];

const poolsOf = (
  { supervisor }: GroupMembersDeps,
  env: EnvRecord,
  group: AutoscalingGroup,
): readonly PoolSnapshot[] =>
  env.members
    .filter(({ config, deleting }) => config.scalingGroup === group.name && deleting === false)
    .flatMap(({ name }) => supervisor.pools.ofMember(env, name) ?? [])
    .filter(({ record }) => record.deleting === false);

const observed = (
  { supervisor, demand, clock }: GroupMembersDeps,
  { record, counts }: PoolSnapshot,
  { group, quota }: { readonly group: AutoscalingGroup; readonly quota: number | undefined },
): Observation => {
  const { uid, name, replicas, updateRevision, decided } = record;
  const {
    scaleUpPolicy,
    scaleDownPolicy: { protectionWindowSeconds },
  } = group;
  const trouble = supervisor.pools.startTrouble(uid) ?? unplacedIn({ supervisor, clock }, record);
  return {
    name,
    desired: replicas,
    running: counts.running,
    idle: counts.idle,
    unavailable: counts.unavailable,
    settled:
      counts.idle > 0
        ? supervisor.index.createdBefore('idle', uid, {
            revision: updateRevision,
            moment: clock.now() - protectionWindowSeconds * 1_000,
          }).length
        : 0,
    pending: demand.pending(uid, askingMs(scaleUpPolicy)),
    waiting: demand.waiting(uid),
    claimedAt: Math.max(demand.cameAt(uid), supervisor.index.lastClaimedAt(uid)),
    ...(quota === undefined ? {} : { quota }),
    reachable: true,
    ...(trouble ? { trouble } : {}),
    decided: decided?.id ?? 0,
  };
};

const unplacedIn = (
  { supervisor, clock }: Pick<GroupMembersDeps, 'supervisor' | 'clock'>,
  { uid, updateRevision }: PoolRecord,
): NonNullable<Observation['trouble']> | undefined => {
  const since = clock.now();
  const count = supervisor.index
    .createdBefore('starting', uid, { revision: updateRevision, moment: since - UNPLACED_MS })
    .filter((id) => supervisor.sandbox(id)?.context.hindrance === 'Unschedulable').length;
  return count > 0 ? { reason: 'unschedulable', count, since } : undefined;
};

const UNPLACED_MS = 60_000;

/** Groups of one owner share the usage. */
const KEPT_MS = 1_000;
const MOST_OWNERS = 10_000;

class Room {
  readonly #deps: Pick<GroupMembersDeps, 'coordination' | 'clock' | 'quotaLimits'>;
  readonly #used = new Map<string, { readonly at: number; readonly used: QuotaAmounts }>();

  constructor(deps: Pick<GroupMembersDeps, 'coordination' | 'clock' | 'quotaLimits'>) {
    this.#deps = deps;
  }

  async left(owner: Tenant): Promise<QuotaAmounts | undefined> {
    const { coordination, clock, quotaLimits } = this.#deps;
    const key = tenantKey(owner);
    const known = this.#used.get(key);
    try {
      const isFresh = known !== undefined && clock.now() - known.at < KEPT_MS;
      const used = isFresh ? known.used : await coordination.used(owner);
      if (!isFresh) this.#keep(key, used);
      const limits = quotaLimits.of(owner);
      return eachResource((resource) => Math.max(0, limits[resource] - used[resource]));
    } catch {
      return undefined;
    }
  }

  changed(owner: Tenant): void {
    this.#used.delete(tenantKey(owner));
  }

  #keep(key: string, used: QuotaAmounts): void {
    if (this.#used.size >= MOST_OWNERS) this.#used.clear();
    this.#used.set(key, { at: this.#deps.clock.now(), used });
  }
}

interface Sizing extends ScalingChange {
  readonly id: number;
  readonly cause: ScalingDecision['cause'];
  readonly sparesMs: number | undefined;
}

/**
 * A surplus removes the longest idle instances and spares young ones. Other causes remove starting
 * instances first.
 */
const sizing = (
  env: EnvRecord,
  { id, cause }: Pick<ScalingDecision, 'id' | 'cause'>,
  change: ScalingChange,
): Sizing => {
  const member = env.members.find(({ name }) => name === change.member);
  const group = env.groups.find(({ name }) => name === member?.config.scalingGroup);
  return {
    ...change,
    id,
    cause,
    sparesMs:
      cause === 'surplus' && change.to < change.from && group
        ? group.scaleDownPolicy.protectionWindowSeconds * 1_000
        : undefined,
  };
};

const resized = async (
  deps: GroupMembersDeps,
  before: PoolRecord,
  size: Sizing,
): Promise<ChangeOutcome> => {
  if (outcomeOf(before, size) === 'done') return { kind: 'done' };
  const resizing = new Resizing(deps, before);
  try {
    const record = await deps.supervisor.pools.change(
      before.uid,
      async (current) => {
        if (outcomeOf(current, size) || countsAwayRunning(deps, size, before.uid)) return current;
        const { requested: _overruled, ...rest } = current;
        const next = {
          ...rest,
          replicas: size.to,
          decided: {
            id: size.id,
            ...(size.sparesMs === undefined ? {} : { sparesMs: size.sparesMs }),
          },
        };
        await resizing.cover(current, next);
        return next;
      },
      resizing.permitted,
    );
    if (record?.decided?.id !== size.id) {
      await resizing.failed(undefined);
      return { kind: 'overtaken' };
    }
    await resizing.landed(record);
    return { kind: 'done' };
  } catch (error) {
    await resizing.failed(error);
    if (error instanceof Refusal && error.code === 'QUOTA_EXCEEDED')
      return { kind: 'refused', reason: 'quota' };
    throw error;
  }
};

/** An owner's limit applies even below the running count. */
const countsAwayRunning = (
  { supervisor }: GroupMembersDeps,
  { cause, from, to }: Sizing,
  uid: string,
): boolean =>
  cause !== 'limits' && to < from && to < (supervisor.pools.get(uid)?.counts.running ?? 0);

const outcomeOf = (
  { replicas, decided, deleting }: PoolRecord,
  { id, from }: Sizing,
): 'done' | 'overtaken' | undefined => {
  if (decided?.id === id) return 'done';
  return deleting !== false || replicas !== from || (decided?.id ?? 0) > id
    ? 'overtaken'
    : undefined;
};
