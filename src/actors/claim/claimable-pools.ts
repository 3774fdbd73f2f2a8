import type { EnvMirror } from '../runtime/env-mirror.ts';
import type { PoolSnapshot } from '../pool/pool-snapshot.ts';
import type { Supervisor } from '../sandbox/supervisor.ts';
import { claimOrderOf } from '../../model/envs/claim-order.ts';
import { poolBeingDeleted, poolNotOwned, poolNotFound, unavailable } from '../../model/refusals.ts';
import { mayUse, type Caller } from '../../model/tenant.ts';
import { memberPoolOf } from '../env/commands/member-pool.ts';

export interface ClaimablePoolsDeps {
  readonly supervisor: Supervisor;
  readonly envs: Pick<EnvMirror, 'named' | 'lookUp'>;
}

/**
 * Returns what the caller may claim from by a name: the pool of that name, or the pools of that
 * env's members, the best first. A pool counts before an env of its name, unless it is a member of
 * it. Own namespace first, elsewhere only to say that it is another's.
 */
export const claimablePools = async (
  { supervisor, envs }: ClaimablePoolsDeps,
  caller: Caller,
  name: string,
): Promise<readonly [PoolSnapshot, ...PoolSnapshot[]]> => {
  const { pools } = supervisor;
  const { namespace } = caller;
  const find = (): PoolSnapshot | undefined => {
    const uid = pools.index.uidOf(namespace, name);
    return uid === undefined ? undefined : pools.get(uid);
  };
  const isKnown = pools.index.uidOf(namespace, name) !== undefined;
  if (!isKnown && !envs.named(namespace, name))
    await Promise.all([pools.lookUp(namespace, name), envs.lookUp(`${namespace}/${name}`)]);
  const pool = find();
  if (!pool && pools.unhosted(namespace, name))
    throw unavailable('the pool can not be used now; try again');
  if (!pool || pool.record.env?.name === name) {
    const [first, ...others] = poolsOfEnv({ supervisor, envs }, caller, name);
    if (first) return [first, ...others];
  }
  if (!pool)
    throw pools.index.existsAnywhere(name)
      ? poolNotOwned()
      : poolNotFound(name, choicesOf(supervisor, caller));
  if (!mayUse(pool.record, caller)) throw poolNotOwned();
  if (pool.record.deleting !== false) throw poolBeingDeleted();
  return [pool];
};

const poolsOfEnv = (
  { supervisor, envs }: ClaimablePoolsDeps,
  caller: Caller,
  name: string,
): readonly PoolSnapshot[] => {
  const env = envs.named(caller.namespace, name);
  if (!env || env.deleting !== false || !mayUse(env, caller)) return [];
  return claimOrderOf(
    env.members.flatMap(({ name: member, config, deleting }) => {
      const pool = deleting === false ? memberPoolOf(supervisor, env, member) : undefined;
      if (!pool || pool.record.deleting !== false || !mayUse(pool.record, caller)) return [];
      const { priority = 0 } = config;
      return [{ name: member, idle: pool.counts.idle, priority, latencyMs: 0, pool }];
    }),
  ).map(({ pool }) => pool);
};

/** Pools that a refusal names for the caller to choose from. */
const MOST_CHOICES = 50;

const choicesOf = ({ pools }: Supervisor, caller: Caller) =>
  pools.index.listFor(caller, 0, MOST_CHOICES).ids.flatMap((uid) => {
    const pool = pools.get(uid);
    if (!pool) return [];
    const { record, counts } = pool;
    return [
      {
        name: record.name,
        namespace: record.owner.namespace,
        idle: counts.idle,
        running: counts.running,
        starting: counts.starting,
      },
    ];
  });
