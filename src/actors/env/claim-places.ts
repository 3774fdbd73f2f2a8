import type { EnvMirror } from '../runtime/record-mirror.ts';
import type { Supervisor } from '../sandbox/supervisor.ts';
import { claimOrderOf, type ClaimableMember } from '../../model/envs/claim-order.ts';
import { copiedIn } from '../../model/envs/env-copy.ts';
import type { EnvMember, EnvRecord } from '../../model/envs/env.ts';
import { mayUse, type Caller } from '../../model/tenant.ts';
import type { AwayDeps } from './commands/away/away-effects.ts';

export interface ClaimPlace {
  readonly clusterId: string;
  readonly poolName: string;
  /** Records the result of a claim there, until an observation shows it. */
  readonly took: (what: 'one' | 'all') => void;
}

export interface ClaimPlacesDeps {
  readonly supervisor: Pick<Supervisor, 'pools'>;
  readonly envs: Pick<EnvMirror, 'named'>;
  readonly clusterId: string;
  /** Absent without other clusters. */
  readonly away?: AwayDeps;
}

/**
 * Best first: members on clusters that answer, or one remote member if none does. Empty if the
 * local cluster handles the claim itself.
 */
export const claimPlaces =
  (deps: ClaimPlacesDeps) =>
  (caller: Caller, name: string): readonly ClaimPlace[] => {
    const env = deps.away && envToClaim(deps, caller, name);
    if (!env) return [];
    const members = env.members.filter(({ deleting }) => deleting === false);
    const found = members.flatMap((member) => candidateOf(deps, env, member) ?? []);
    const lost = members.filter(({ clusterId }) => clusterId !== deps.clusterId).slice(0, 1);
    return found.length > 0
      ? claimOrderOf(found)
      : lost.map(({ clusterId, name: poolName }) => ({
          clusterId,
          poolName,
          took: () => undefined,
        }));
  };

/** A pool of the name that is not its member takes precedence. */
const envToClaim = (
  { supervisor: { pools }, envs, clusterId }: ClaimPlacesDeps,
  caller: Caller,
  name: string,
): EnvRecord | undefined => {
  const env = envs.named(caller.namespace, name);
  if (!env || env.deleting !== false || !mayUse(env, caller)) return undefined;
  if (env.members.every((member) => member.clusterId === clusterId)) return undefined;
  const pool = pools.named(caller.namespace, name);
  return pool && pool.record.env?.uid !== env.uid ? undefined : env;
};

type Candidate = ClaimableMember & ClaimPlace;

const candidateOf = (
  { supervisor, clusterId: local, away }: ClaimPlacesDeps,
  env: EnvRecord,
  { name, clusterId, config: { priority = 0 } }: EnvMember,
): Candidate | undefined => {
  const place = { name, poolName: name, clusterId, priority };
  if (clusterId === local) {
    const pool = supervisor.pools.ofMember(env, name);
    return pool && { ...place, idle: pool.counts.idle, latencyMs: 0, took: () => undefined };
  }
  const seen = away?.mirror.seen(env.uid, clusterId);
  const copied = seen?.copy && copiedIn(seen.copy, name);
  const latencyMs = away?.copies.latencyOf(clusterId);
  if (!away || !copied || !seen.reachable || latencyMs === undefined) return undefined;
  return {
    ...place,
    latencyMs,
    idle: copied.idle - away.mirror.taken(env.uid, clusterId, name),
    took: (what) => {
      away.mirror.took(env.uid, clusterId, { name, count: what === 'one' ? 1 : copied.idle });
    },
  };
};
