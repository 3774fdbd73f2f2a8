import type { Supervisor } from '../../sandbox/supervisor.ts';
import type { PublishedCondition, PublishedStatus } from '../../../contracts/record-store.ts';
import { isDegraded } from '../../../model/pools/pool-condition.ts';
import { shardOf } from '../../../model/shards.ts';
import { viewOfPool } from '../start-hindrance.ts';
import type { PoolView } from '../../views.ts';

/**
 * Undefined if this replica does not lead the pool. Counts have the names of `GET
 * /sandboxpools/{name}`.
 */
export const poolStatus = (
  supervisor: Pick<Supervisor, 'pools' | 'index' | 'sandbox'>,
  uid: string,
): PublishedStatus | undefined => {
  const pool = supervisor.pools.get(uid);
  if (!pool || !supervisor.pools.actors.leads(shardOf(uid))) return undefined;
  const view = viewOfPool(supervisor, pool);
  const { record, phase, counts, updated, conditions } = view;
  const unclaimed = counts.starting + counts.idle + counts.unavailable;
  return {
    namespace: record.owner.namespace,
    name: record.name,
    fields: {
      phase,
      replicas: unclaimed + (supervisor.pools.semantics === 'total' ? counts.running : 0),
      idleReplicas: counts.idle,
      unavailableIdleReplicas: counts.unavailable,
      runningReplicas: counts.running,
      startingReplicas: counts.starting,
      stoppingReplicas: counts.stopping + counts.retiring,
      failedReplicas: counts.failed,
      updatedReplicas: updated.starting + updated.idle + updated.unavailable + updated.running,
    },
    conditions: [readinessOf(view), ...conditions.map(publishedOf)],
    undecided: record.requested !== undefined && record.deleting === false,
    // The reason of a blocked start appears without a transition of the instance.
    pending: counts.starting > 0,
  };
};

export const publishedOf = ({
  type,
  status,
  reason,
  message,
}: PublishedCondition): PublishedCondition => ({ type, status, reason, message });

/** Ready if an instance is idle, or if the pool has all its replicas. */
const readinessOf = ({ record, phase, counts, conditions }: PoolView): PublishedCondition => {
  const type = 'Ready';
  if (phase === 'Deleting') return { type, status: 'False', reason: 'Deleting', message: '' };
  if (counts.idle > 0) return { type, status: 'True', reason: 'InstancesIdle', message: '' };
  if (phase === 'Ready') return { type, status: 'True', reason: 'Filled', message: '' };
  const degraded = conditions.find(isDegraded);
  return degraded
    ? {
        type,
        status: 'False',
        reason: 'Degraded',
        message: `${degraded.reason}: ${degraded.message}`,
      }
    : {
        type,
        status: 'False',
        reason: 'Filling',
        message: `none of ${record.replicas} instances is idle yet`,
      };
};
