import type { PoolSnapshot } from './pool-snapshot.ts';
import type { Supervisor } from '../sandbox/supervisor.ts';
import { isDegraded } from '../../model/pools/pool-condition.ts';
import type { StartHindrance } from '../../model/sandbox.ts';
import type { PoolView } from '../views.ts';

export interface PoolHindrance {
  /** `StartsFail`: starts have failed, and no reason is known for one in progress. */
  readonly reason: StartHindrance | 'StartsFail';
  readonly message: string;
  /** Creation of the oldest blocked instance (ms since the epoch). */
  readonly since?: number;
}

interface Hindered extends PoolHindrance {
  readonly since: number;
}

export const hindranceOf = (
  supervisor: Supervisor,
  { record, counts, conditions }: PoolSnapshot,
): PoolHindrance | undefined => {
  const hindered = hinderedIn(supervisor, { record, counts });
  if (hindered || missingFrom(supervisor, { record, counts }) <= 0) return hindered;
  const breaker = supervisor.pools.whole(record.uid)?.context.breaker;
  if (!breaker || breaker.reason === '') return undefined;
  const degraded = conditions.find(isDegraded);
  return { reason: 'StartsFail', message: breaker.reason, since: degraded?.since };
};

export const missingFrom = (
  { pools }: Pick<Supervisor, 'pools'>,
  { record, counts }: Pick<PoolSnapshot, 'record' | 'counts'>,
): number =>
  record.replicas -
  counts.idle -
  counts.unavailable -
  (pools.semantics === 'total' ? counts.running : 0);

/**
 * Degraded if instances can't start now: a blocked start counts as failed only after the template's
 * startupTimeout.
 */
export const viewOfPool = (
  supervisor: Pick<Supervisor, 'index' | 'sandbox'>,
  pool: PoolSnapshot,
): PoolView => {
  const hindered = pool.record.deleting === false ? hinderedIn(supervisor, pool) : undefined;
  if (!hindered || pool.conditions.some(isDegraded)) return pool;
  const { reason, message, since } = hindered;
  const degraded = { type: 'Degraded', status: 'True', reason, message, since } as const;
  return {
    ...pool,
    phase: pool.phase === 'Pending' || pool.phase === 'Scaling' ? 'Degraded' : pool.phase,
    conditions: pool.conditions.map((condition) =>
      condition.type === 'Degraded' ? degraded : condition,
    ),
  };
};

const hinderedIn = (
  supervisor: Pick<Supervisor, 'index' | 'sandbox'>,
  { record, counts }: Pick<PoolSnapshot, 'record' | 'counts'>,
): Hindered | undefined => {
  if (counts.starting === 0) return undefined;
  let oldest: Hindered | undefined;
  for (const id of supervisor.index.startingIn(record.uid)) {
    const { hindrance, unready = '', record: born } = supervisor.sandbox(id)?.context ?? {};
    if (!hindrance || !born || (oldest && oldest.since <= born.createdAt)) continue;
    oldest = { reason: hindrance, message: unready, since: born.createdAt };
  }
  return oldest;
};
