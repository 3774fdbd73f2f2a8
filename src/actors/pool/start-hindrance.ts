import type { PoolSnapshot } from './pool-snapshot.ts';
import type { Supervisor } from '../sandbox/supervisor.ts';
import { isDegraded } from '../../model/pools/pool-condition.ts';
import type { StartHindrance } from '../../model/sandbox.ts';
import type { PoolView } from '../views.ts';

/** Describes what keeps instances of a pool from starting. */
export interface PoolHindrance {
  /** `StartsFail`: starts have failed, and nothing is known of one that is under way. */
  readonly reason: StartHindrance | 'StartsFail';
  /** In the words of whoever said so. */
  readonly message: string;
  /** When the oldest of those that are kept from starting was born (ms since the epoch). */
  readonly since?: number;
}

interface Hindered extends PoolHindrance {
  readonly since: number;
}

/**
 * Says why a pool that lacks instances does not get them, as far as this replica knows; undefined
 * where nothing hinders them.
 */
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

/** Counts the instances that the pool should have and that are not ready yet. */
export const missingFrom = (
  { pools }: Pick<Supervisor, 'pools'>,
  { record, counts }: Pick<PoolSnapshot, 'record' | 'counts'>,
): number =>
  record.replicas -
  counts.idle -
  counts.unavailable -
  (pools.semantics === 'total' ? counts.running : 0);

/**
 * Shows a pool as it stands, Degraded where instances of it can't start as things are: a start that
 * is kept from going on counts as failed only after the template's startupTimeout.
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

/** Tells what hinders the oldest instance of those that are kept from starting. */
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
