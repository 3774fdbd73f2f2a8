import type { PoolSnapshot } from '../actors/pool-snapshot.ts';
import type { Supervisor } from '../actors/supervisor.ts';
import { NO_INSTANCES, type PoolRecord } from '../model/pool.ts';
import { poolNotFound } from '../model/refusals.ts';
import { sameTenant, type Caller } from '../model/tenant.ts';
import { viewOfPool } from './start-hindrance.ts';
import type { PoolView } from './views.ts';

/** The caller's pool of that name; whether it is unknown or another's, the refusal is the same. */
export const findPool = async (supervisor: Supervisor, caller: Caller, name: string): Promise<PoolSnapshot> => {
  await supervisor.pools.freshen(caller.namespace, name);
  const uid = supervisor.pools.index.uidOf(caller.namespace, name);
  const pool = uid === undefined ? undefined : supervisor.pools.get(uid);
  if (!pool || !(sameTenant(pool.record.owner, caller) || caller.role === 'admin')) throw poolNotFound();
  return pool;
};

/** The pool as it stands; from its record alone where its actor is gone. */
export const poolViewOf = (supervisor: Supervisor, record: PoolRecord): PoolView => {
  const pool = supervisor.pools.get(record.uid);
  return pool ? viewOfPool(supervisor, pool) : ofRecord(record);
};

const ofRecord = (record: PoolRecord): PoolView =>
  ({ record, phase: record.deleting === false ? 'Pending' : 'Deleting', counts: NO_INSTANCES, updated: NO_INSTANCES, conditions: record.conditions ?? [] });
