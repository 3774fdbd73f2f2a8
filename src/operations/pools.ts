import type { Supervisor } from '../actors/supervisor.ts';
import type { Clock } from '../contracts/clock.ts';
import type { Coordination } from '../contracts/coordination.ts';
import { OutcomeUnknown, RecordConflict } from '../contracts/sandbox-driver.ts';
import { requireMatch } from '../model/if-match.ts';
import type { PoolRecord } from '../model/pool.ts';
import { poolBeingDeleted, poolNotFound, poolQuotaExceeded, unavailable } from '../model/refusals.ts';
import { findPool, poolViewOf } from './find-pool.ts';
import type { Operations } from './operations.ts';
import { requireReserved } from './reservations.ts';

/** One pool of the caller's (operation `GET /sandboxpools/{name}`). */
export const getPool = (deps: { readonly supervisor: Supervisor }): Operations['getPool'] =>
  (caller, name) => findPool(deps.supervisor, caller, name);

/** The caller's pools, newest first; an admin's `all` shows everyone's (operation `GET /sandboxpools`). */
export const listPools = (deps: { readonly supervisor: Supervisor }): Operations['listPools'] => async (caller, filter, { limit, offset }) => {
  const everyone = caller.role === 'admin' && filter.all;
  const { ids, total } = deps.supervisor.pools.index.list(everyone ? undefined : caller, offset, limit);
  const items = ids.flatMap((uid) => deps.supervisor.pools.get(uid) ?? []);
  return { items, total, limit, offset };
};

export interface UpdatePoolDeps {
  readonly supervisor: Supervisor;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly replicaLimit: number;
}

/** Changes a pool of the caller's; an empty change changes nothing (operation `PUT /sandboxpools/{name}`). */
export const updatePool = (deps: UpdatePoolDeps): Operations['updatePool'] => async (caller, name, change) => {
  const { supervisor, coordination, clock } = deps;
  const { record: before } = await findPool(supervisor, caller, name);
  requireMatch(change.ifMatch, before.revision);
  if (before.deleting !== false) throw poolBeingDeleted();
  const { replicas } = change;
  if (replicas === undefined || replicas === before.replicas) return poolViewOf(supervisor, before);
  const limit = replicas < before.replicas ? Number.POSITIVE_INFINITY : deps.replicaLimit; // giving back is never refused
  const since = clock.now();
  if (!await coordination.reserve(before.owner, 'replicas', { name: before.uid, amount: replicas, limit })) throw poolQuotaExceeded();
  try {
    const record = await supervisor.pools.change(before.uid, async (current) => {
      requireMatch(change.ifMatch, current.revision);
      if (current.deleting !== false) throw poolBeingDeleted();
      await requireReserved(deps, { tenant: before.owner, name: before.uid, resources: ['replicas'], since });
      return { ...current, replicas };
    });
    if (!record) throw poolNotFound();
    return poolViewOf(supervisor, record);
  } catch (error) {
    await reserveAgain(deps, before, error instanceof OutcomeUnknown ? replicas : 0).catch(() => undefined);
    return conflictAsUnavailable(error);
  }
};

/** As many as the pool stands with; as the change asked for where that may have landed, and is settled later. */
const reserveAgain = async ({ supervisor, coordination }: UpdatePoolDeps, { uid, owner }: PoolRecord, atLeast: number): Promise<void> => {
  const standing = supervisor.pools.get(uid)?.record.replicas;
  if (standing === undefined) await coordination.release(owner, 'replicas', uid);
  else await coordination.reserve(owner, 'replicas', { name: uid, amount: Math.max(standing, atLeast), limit: Number.POSITIVE_INFINITY });
};

/**
 * Deletes a pool of the caller's (operation `DELETE /sandboxpools/{name}`): its unclaimed instances go; running sandboxes
 * live on unless `force`. The record goes when they have. Repeating it is harmless; `force` may be added later.
 */
export const deletePool = (deps: { readonly supervisor: Supervisor }): Operations['deletePool'] => async (caller, name, { force }) => {
  const { record: before } = await findPool(deps.supervisor, caller, name);
  const record = await deps.supervisor.pools.change(before.uid, (current) =>
    ({ ...current, deleting: force || current.deleting === 'force' ? 'force' : 'keep-running' })).catch(conflictAsUnavailable);
  return poolViewOf(deps.supervisor, { ...before, ...record, deleting: record?.deleting ?? 'keep-running' });
};

/** The pool was changed, or its deletion finished, between reading and writing. */
const conflictAsUnavailable = (error: unknown): never => {
  throw error instanceof RecordConflict ? unavailable('the pool changed meanwhile; try again') : error;
};
