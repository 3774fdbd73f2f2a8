import type { PoolCondition } from '../../model/pools/pool-condition.ts';
import { timestampOf } from '../corridor/common-schema.ts';

/**
 * Presents a condition of a pool or an env, its fields in one order whatever order the store keeps:
 * the text is what an ETag stands for.
 */
export const presentCondition = <Type extends string>({
  type,
  status,
  reason,
  message,
  since,
}: Omit<PoolCondition, 'type'> & { readonly type: Type }) => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: timestampOf(since),
});
