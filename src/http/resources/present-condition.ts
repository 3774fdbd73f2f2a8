import type { PoolCondition } from '../../model/pools/pool-condition.ts';
import { timestampOf } from '../corridor/common-schema.ts';

/** Fixes the order of fields, because the ETag hashes the text. */
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
