import type { PoolSnapshot } from '../pool-snapshot.ts';
import type { Supervisor } from '../../sandbox/supervisor.ts';
import { NO_INSTANCES, type PoolRecord } from '../../../model/pools/pool.ts';
import { notOwnersChange, poolNotFound } from '../../../model/refusals.ts';
import { mayUse, sameTenant, type Caller } from '../../../model/tenant.ts';
import { viewOfPool } from '../start-hindrance.ts';
import type { PoolView } from '../../views.ts';

/** Refuses as `findUsablePool`, and with FORBIDDEN if the pool is only shared with the caller. */
export const findPool = async (
  supervisor: Supervisor,
  caller: Caller,
  name: string,
): Promise<PoolSnapshot> => {
  const pool = await findUsablePool(supervisor, caller, name);
  if (!sameTenant(pool.record.owner, caller) && caller.role !== 'admin')
    throw notOwnersChange('pool');
  return pool;
};

/** Own or shared. The refusal is the same for unknown and other tenants' pools. */
export const findUsablePool = async (
  supervisor: Supervisor,
  caller: Caller,
  name: string,
): Promise<PoolSnapshot> => {
  const pool = await usablePool(supervisor, caller, name);
  if (!pool) throw poolNotFound(name);
  return pool;
};

export const usablePool = async (
  supervisor: Supervisor,
  caller: Caller,
  name: string,
): Promise<PoolSnapshot | undefined> => {
  await supervisor.pools.refresh(caller.namespace, name);
  const pool = supervisor.pools.named(caller.namespace, name);
  return pool && (mayUse(pool.record, caller) || caller.role === 'admin') ? pool : undefined;
};

/** Made only from its record if it lacks an actor. */
export const poolViewOf = (supervisor: Supervisor, record: PoolRecord): PoolView => {
  const pool = supervisor.pools.get(record.uid);
  return pool ? viewOfPool(supervisor, pool) : ofRecord(record);
};

const ofRecord = (record: PoolRecord): PoolView => ({
  record,
  phase: record.deleting === false ? 'Pending' : 'Deleting',
  counts: NO_INSTANCES,
  updated: NO_INSTANCES,
  conditions: record.conditions ?? [],
});
