import type { PoolSnapshot } from '../../actors/pool/pool-snapshot.ts';
import type { Supervisor } from '../../actors/sandbox/supervisor.ts';
import {
  poolBeingDeleted,
  poolNotOwned,
  poolToClaimNotFound,
  unavailable,
} from '../../model/refusals.ts';
import { mayUse, type Caller } from '../../model/tenant.ts';

/** Pools that a refusal names for the caller to choose from. */
const MOST_CHOICES = 50;

/**
 * Returns the pool if the caller may claim from it: own namespace first, elsewhere only to say that
 * it is another's.
 */
export const claimablePool = async (
  supervisor: Supervisor,
  caller: Caller,
  name: string,
): Promise<PoolSnapshot> => {
  const { pools } = supervisor;
  if (pools.index.uidOf(caller.namespace, name) === undefined)
    await pools.lookUp(caller.namespace, name);
  const uid = pools.index.uidOf(caller.namespace, name);
  const pool = uid === undefined ? undefined : pools.get(uid);
  if (!pool && pools.unhosted(caller.namespace, name))
    throw unavailable('the pool can not be used now; try again');
  if (!pool)
    throw pools.index.existsAnywhere(name)
      ? poolNotOwned()
      : poolToClaimNotFound(choicesOf(supervisor, caller));
  if (!mayUse(pool.record, caller)) throw poolNotOwned();
  if (pool.record.deleting !== false) throw poolBeingDeleted();
  return pool;
};

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
