import type { EventFeed } from '../../runtime/event-feed.ts';
import type { Supervisor } from '../../sandbox/supervisor.ts';
import type { EventRecord } from '../../../model/event.ts';
import type { PoolRecord } from '../../../model/pools/pool.ts';
import { poolNotFound } from '../../../model/refusals.ts';
import { sameTenant, type Caller } from '../../../model/tenant.ts';
import type { PoolOperations } from './pool-operations.ts';
import { usablePool } from './find-pool.ts';

export interface PoolEventsDeps {
  readonly supervisor: Supervisor;
  readonly events: EventFeed;
}

const MOST_EVENTS = 50;

/**
 * The last 50 of the existing pool, and of the caller's earlier ones with that name (operation `GET
 * /sandboxpools/{name}/events`).
 */
export const poolEvents =
  ({ supervisor, events }: PoolEventsDeps): PoolOperations['poolEvents'] =>
  async (caller, name) => {
    const record = (await usablePool(supervisor, caller, name))?.record;
    const kept = (await events.eventsOfPool(caller.namespace, name)).filter((event) =>
      mayRead(caller, event, record),
    );
    const all = record && !kept.some(isCreationOf(record)) ? [creationOf(record), ...kept] : kept;
    if (all.length === 0) throw poolNotFound(name);
    return all.toSorted((a, b) => a.at - b.at).slice(-MOST_EVENTS);
  };

/** An earlier pool may not have been shared with the caller. */
const mayRead = (
  caller: Caller,
  { owner, at }: EventRecord,
  pool: PoolRecord | undefined,
): boolean =>
  caller.role === 'admin' ||
  sameTenant(owner, caller) ||
  (pool !== undefined && sameTenant(owner, pool.owner) && at >= pool.createdAt);

const isCreationOf =
  ({ createdAt }: PoolRecord) =>
  ({ reason, at }: EventRecord): boolean =>
    reason === 'Created' && at === createdAt;

const creationOf = ({ createdAt: at, owner, name: poolName }: PoolRecord): EventRecord => ({
  at,
  owner,
  poolName,
  reason: 'Created',
});
