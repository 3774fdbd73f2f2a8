import type { RateLimits } from '../../contracts/coordination/rate-limits.ts';
import type { Requests } from '../../contracts/coordination/requests.ts';
import type { RequestFingerprint } from '../../model/request-fingerprint.ts';
import type { Caller } from '../../model/tenant.ts';
import { IdempotentRequest, requestOwnerOf, type AskedByManager } from './idempotent-request.ts';

export interface RequestOperations {
  readonly idempotentRequest: (
    mark: RequestFingerprint,
    caller: Caller,
    byManager?: AskedByManager,
  ) => IdempotentRequest;
  /** Over all replicas; permits 20 a minute for one group of addresses. Never rejects. */
  readonly countRejectedKey: (
    addressGroup: string,
  ) => Promise<{ readonly within: boolean; readonly retryAfterMs: number }>;
}

const MOST_REJECTED_KEYS = 20;
const WINDOW_MS = 60_000;

export const requestOperations = (coordination: Requests & RateLimits): RequestOperations => ({
  idempotentRequest: (mark, caller, byManager) =>
    new IdempotentRequest(coordination, mark, {
      owner: requestOwnerOf(caller, byManager),
      byManager,
    }),
  countRejectedKey: (addressGroup) =>
    coordination.countWithin(`bad-keys/${addressGroup}`, MOST_REJECTED_KEYS, WINDOW_MS),
});
