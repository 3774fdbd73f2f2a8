import type { PoolRecord } from '../../../model/pools/pool.ts';
import { invalidArgument } from '../../../model/refusals.ts';

export type Scale = Pick<PoolRecord, 'replicas' | 'minReplicas' | 'maxReplicas'>;

/** By default 1, within the bounds. Refuses contradictions. */
export const scaleOf = ({
  replicas,
  minReplicas = 0,
  maxReplicas = Number.POSITIVE_INFINITY,
}: Partial<Scale>): Pick<Scale, 'replicas'> => {
  if (minReplicas > maxReplicas)
    throw invalidArgument('minReplicas', `must be at most maxReplicas, ${maxReplicas}`);
  if (replicas === undefined) return { replicas: Math.min(Math.max(1, minReplicas), maxReplicas) };
  if (replicas < minReplicas)
    throw invalidArgument('replicas', `must be at least minReplicas, ${minReplicas}`);
  if (replicas > maxReplicas)
    throw invalidArgument('replicas', `must be at most maxReplicas, ${maxReplicas}`);
  return { replicas };
};
