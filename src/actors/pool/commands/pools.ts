import type { EnvMirror } from '../../runtime/record-mirror.ts';
import type { Supervisor } from '../../sandbox/supervisor.ts';
import { poolOfEnv } from '../../../model/refusals.ts';
import { findPool, findUsablePool, poolViewOf } from './find-pool.ts';
import type { PoolOperations } from './pool-operations.ts';
import { viewOfPool } from '../start-hindrance.ts';
import { asUnavailable } from './update-pool.ts';

/** Operation `GET /sandboxpools/{name}`. */
export const getPool =
  (deps: { readonly supervisor: Supervisor }): PoolOperations['getPool'] =>
  async (caller, name) =>
    viewOfPool(deps.supervisor, await findUsablePool(deps.supervisor, caller, name));

/**
 * Own and shared pools, newest first (operation `GET /sandboxpools`). `all` includes everybody's
 * for an admin.
 */
export const listPools =
  (deps: { readonly supervisor: Supervisor }): PoolOperations['listPools'] =>
  async (caller, filter, { limit, offset }) => {
    const everyone = caller.role === 'admin' && filter.all;
    const { phase } = filter;
    const viewsOf = (from: number, most: number) => {
      const owner = everyone ? undefined : caller;
      const { ids, total } = deps.supervisor.pools.index.listFor(owner, from, most);
      const pools = ids.flatMap((uid) => deps.supervisor.pools.get(uid) ?? []);
      return { items: pools.map((pool) => viewOfPool(deps.supervisor, pool)), total };
    };
    if (phase === undefined) return { ...viewsOf(offset, limit), limit, offset };
    const { items } = viewsOf(0, Number.POSITIVE_INFINITY);
    const inPhase = items.filter((pool) => pool.phase === phase);
    return {
      items: inPhase.slice(offset, offset + limit),
      total: inPhase.length,
      limit,
      offset,
    };
  };

/**
 * Running sandboxes continue unless `force`, and the record goes after them (operation `DELETE
 * /sandboxpools/{name}`). Repeatable, also with `force` later. Refuses a pool of an env's member
 * with CONFLICT.
 */
export const deletePool =
  (deps: {
    readonly supervisor: Supervisor;
    readonly envs: EnvMirror;
  }): PoolOperations['deletePool'] =>
  async (caller, name, { force }) => {
    const { record: before } = await findPool(deps.supervisor, caller, name);
    if (before.env) {
      await deps.envs.refresh(`${before.owner.namespace}/${before.env.name}`);
      if (deps.envs.get(before.env.uid)?.members.some((member) => member.name === name))
        throw poolOfEnv(before.env.name, name);
    }
    const record = await deps.supervisor.pools
      .change(before.uid, (current) => ({
        ...current,
        deleting: force || current.deleting === 'force' ? 'force' : 'keep-running',
      }))
      .catch((error: unknown) => {
        throw asUnavailable(error);
      });
    return poolViewOf(deps.supervisor, {
      ...before,
      ...record,
      deleting: record?.deleting ?? 'keep-running',
    });
  };
