import type { ShardParticipant } from '../actors/runtime/shard-participant.ts';
import { CopyMirror } from '../actors/env/copy-mirror.ts';
import { EnvConditions } from '../actors/env/env-conditions.ts';
import type { EnvMirror } from '../actors/runtime/record-mirror.ts';
import { GroupHost, type GroupHostDeps } from '../actors/env/group-host.ts';
import { MemberHost } from '../actors/env/member-host.ts';
import { PoolDemand } from '../actors/pool/pool-demand.ts';
import type { Supervisor } from '../actors/sandbox/supervisor.ts';
import type { Assembly } from './assembly/assembly.ts';
import type { EnvCopies } from '../contracts/fleet/env-copies.ts';
import type { Log } from '../contracts/log.ts';
import type { PublishedStatus } from '../contracts/record-store.ts';
import type { Metrics } from '../contracts/metrics.ts';
import type { ScalingDecision } from '../model/envs/scaling-decision.ts';
import { claimPlaces } from '../actors/env/claim-places.ts';
import {
  deleteGroup,
  getGroup,
  groupDecisions,
  listGroups,
  updateGroup,
} from '../actors/env/commands/env-groups.ts';
import {
  findMemberByKey,
  addMember,
  deleteMember,
  listMembers,
  updateMember,
  type EnvMembersDeps,
} from '../actors/env/commands/env-members.ts';
import {
  findEnvByKey,
  createEnv,
  deleteEnv,
  getEnv,
  listEnvs,
  patchEnv,
  replaceEnv,
} from '../actors/env/commands/envs.ts';
import { envStatus } from '../actors/env/commands/env-status.ts';
import { awayEffects, type AwayDeps } from '../actors/env/commands/away/away-effects.ts';
import { groupMembers, type GroupMembersDeps } from '../actors/env/commands/group-members.ts';
import { memberEffects } from '../actors/env/commands/member-effects.ts';
import type { EnvOperations } from '../actors/env/commands/env-operations.ts';
import { syncEnv } from '../actors/env/commands/sync-env.ts';
import type { PoolRenderingDeps } from '../actors/pool/commands/pool-rendering.ts';
import type { QuotaLimits } from '../actors/pool/commands/quota-limits.ts';

export interface EnvPartsDeps extends PoolRenderingDeps {
  readonly parts: Pick<Assembly, 'clock' | 'coordination' | 'history' | 'pullSecrets'> & {
    readonly records: Pick<Assembly['records'], 'envs' | 'pools'>;
  };
  readonly driver: EnvMembersDeps['driver'];
  readonly log: Log;
  readonly metrics: Metrics;
  readonly supervisor: Supervisor;
  readonly quotaLimits: QuotaLimits;
  readonly fleet: {
    readonly clusterId: string;
    /** Absent without other clusters. */
    readonly copies?: EnvCopies;
  };
  readonly newUid: () => string;
  readonly firstMembers: EnvMembersDeps['firstMembers'];
  readonly changed: ((envUid: string) => void) | undefined;
}

export interface EnvParts extends Required<ShardParticipant> {
  readonly mirror: EnvMirror;
  readonly members: MemberHost;
  readonly groups: GroupHost;
  readonly demand: PoolDemand;
  readonly operations: EnvOperations;
  readonly status: (uid: string) => PublishedStatus | undefined;
  start(): Promise<void>;
  stop(): void;
}

export const openEnvs = (mirror: EnvMirror, deps: EnvPartsDeps): EnvParts => {
  const { records } = deps.parts;
  const hosts = hostsOf(mirror, deps);
  const { members, groups, demand, conditions, away, wake } = hosts;
  const viewing = viewingOf(mirror, deps, hosts);
  return {
    mirror,
    members,
    groups,
    demand,
    status: (uid) => envStatus(viewing, uid),
    onShardAcquired: (shard) => {
      members.lead(shard);
      groups.actors.lead(shard);
    },
    onShardReleased: (shard) => {
      members.actors.follow(shard);
      groups.actors.follow(shard);
    },
    caughtUp: () => mirror.caughtUp(),
    claimed: (poolUid, last) => {
      demand.came(poolUid);
      if (last) wake(poolUid);
    },
    startFailed: wake,
    poolChanged: ({ env, name }) => {
      if (!env) return;
      groups.stir(env.uid, name);
      deps.changed?.(env.uid);
    },
    operations: operationsOf(mirror, deps, viewing),
    start: async () => {
      await records.pools.watch((change) => {
        members.pool(change);
      });
      members.start();
      away?.mirror.start({
        changed: (uid) => {
          members.lookAgain(uid);
        },
        counted: (uid) => {
          deps.changed?.(uid);
          for (const { name } of mirror.get(uid)?.members ?? []) groups.stir(uid, name);
        },
      });
      demand.start();
      groups.start();
    },
    stop: () => {
      members.actors.stop();
      groups.actors.stop();
      demand.stop();
      conditions.stop();
      away?.mirror.stop();
    },
  };
};

type Hosts = ReturnType<typeof hostsOf>;

const hostsOf = (mirror: EnvMirror, deps: EnvPartsDeps) => {
  const { parts, log, supervisor, fleet } = deps;
  const { clock, pullSecrets } = parts;
  const { clusterId, copies } = fleet;
  const judge = (uid: string): void => {
    conditions.consider(uid);
    deps.changed?.(uid);
  };
  const away = copies && openAway(mirror, copies, deps);
  const members: MemberHost = new MemberHost({
    runtime: supervisor.runtime,
    envs: mirror,
    clusterId,
    away: away && {
      factOf: (...which) => away.mirror.factOf(...which),
      carryOut: awayEffects(away),
    },
    changed: judge,
    effects: memberEffects({
      ...writingOf(mirror, deps),
      removeEnv: async (env) => {
        await mirror.remove(
          env.uid,
          ({ deleting, members: left }) => deleting !== false && left.length === 0,
        );
        if (env.overrides.imagePullSecretConfigured)
          await pullSecrets.forget({ namespace: env.owner.namespace, uid: env.uid });
      },
    }),
  });
  const conditions = new EnvConditions({
    envs: mirror,
    members,
    groups: { group: (...which) => groups.group(...which) },
    pools: supervisor.pools,
    template: (name) => deps.templates.get(name),
    clock,
    log,
  });
  const { demand, groups, wake } = sizingOf(mirror, deps, {
    away: away && { ...away, clusterId, clock },
    saturated: (...call) => {
      members.saturate(...call);
    },
    limited: judge,
  });
  return { members, groups, demand, conditions, away, wake };
};

const writingOf = (mirror: EnvMirror, deps: EnvPartsDeps) => {
  const { clock, coordination, records } = deps.parts;
  return { ...deps, clock, coordination, pools: records.pools, envs: mirror };
};

const viewingOf = (
  mirror: EnvMirror,
  { supervisor, templates, parts: { clock }, fleet: { clusterId }, quotaLimits }: EnvPartsDeps,
  { members, groups, demand, conditions, away }: Hosts,
) => ({
  supervisor,
  envs: mirror,
  members,
  groups,
  demand,
  conditions,
  templates,
  clock,
  clusterId,
  quotaLimits,
  away,
  copies: away?.mirror,
});

const operationsOf = (
  mirror: EnvMirror,
  deps: EnvPartsDeps,
  viewing: ReturnType<typeof viewingOf>,
): EnvOperations => {
  const { records, pullSecrets, history } = deps.parts;
  const all: EnvMembersDeps = {
    ...writingOf(mirror, deps),
    ...viewing,
    envRecords: records.envs,
    pullSecrets,
    background: (name, work) => {
      work.catch((error: unknown) => {
        deps.log.error({ work: name, error }, 'background-work-failed');
      });
    },
  };
  return {
    claimPlaces: claimPlaces(all),
    createEnv: createEnv(all),
    findEnvByKey: findEnvByKey(all),
    getEnv: getEnv(all),
    listEnvs: listEnvs(all),
    replaceEnv: replaceEnv(all),
    patchEnv: patchEnv(all),
    deleteEnv: deleteEnv(all),
    syncEnv: syncEnv(all),
    addMember: addMember(all),
    findMemberByKey: findMemberByKey(all),
    listMembers: listMembers(all),
    updateMember: updateMember(all),
    deleteMember: deleteMember(all),
    listGroups: listGroups(all),
    getGroup: getGroup(all),
    groupDecisions: groupDecisions({ ...all, history }),
    updateGroup: updateGroup(all),
    deleteGroup: deleteGroup(all),
  };
};

const openAway = (
  envs: EnvMirror,
  copies: EnvCopies,
  { parts: { clock }, log, fleet: { clusterId } }: EnvPartsDeps,
): AwayDeps => ({
  copies,
  envs,
  mirror: new CopyMirror({ copies, envs, clusterId, clock, log }),
});

/** `wake` makes a pool's group evaluate at once. */
const sizingOf = (
  mirror: EnvMirror,
  { parts: { clock, coordination, history }, log, metrics, supervisor, quotaLimits }: EnvPartsDeps,
  { away, ...heard }: Pick<GroupHostDeps, 'saturated' | 'limited'> & Pick<GroupMembersDeps, 'away'>,
) => {
  const wake = (poolUid: string): void => {
    const record = supervisor.pools.get(poolUid)?.record;
    if (record?.env) groups.wake(record.env.uid, record.name);
  };
  const demand = new PoolDemand({ coordination, clock, log, lacking: wake });
  const groups: GroupHost = new GroupHost({
    runtime: supervisor.runtime,
    envs: mirror,
    members: groupMembers({ supervisor, demand, coordination, quotaLimits, clock, away }),
    ...heard,
    decided: (env, group, decision) => {
      metrics.count('sandpool_autoscaling_decisions_total', {
        cause: decision.cause,
        direction: directionOf(decision),
      });
      return history.recordDecision({ envUid: env.uid, group }, decision);
    },
  });
  return { demand, groups, wake };
};

/** `none` for a decision that only reports a limit on growth. */
const directionOf = ({ changes }: ScalingDecision): string => {
  const grown = changes.reduce((sum, { from, to }) => sum + to - from, 0);
  if (changes.length === 0) return 'none';
  return grown > 0 ? 'up' : grown < 0 ? 'down' : 'across';
};
