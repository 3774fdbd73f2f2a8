import type { InstanceDefinition } from '../../model/templates/template.ts';
import type { BreakerStatus, PoolCounts, PoolRecord } from '../../model/pools/pool.ts';
import type { PoolCondition } from '../../model/pools/pool-condition.ts';
import type { PoolPolicy, TokenBucket } from './arithmetic.ts';

/** Instance counts of a pool: all, and those of its revision. */
export interface Tallied {
  readonly counts: PoolCounts;
  readonly updated: PoolCounts;
}

/** `tallied`: the existing instances. */
export interface PoolInput {
  readonly record: PoolRecord;
  readonly policy: PoolPolicy;
  readonly now: number;
  readonly counted?: Tallied;
}

/** `revision`: the instance's updateRevision. */
export type PoolEvent =
  | { readonly type: 'LEAD'; readonly now: number }
  | { readonly type: 'FOLLOW' }
  /** `updated`: instances of this record's revision. */
  | {
      readonly type: 'RECORD';
      readonly record: PoolRecord;
      readonly updated: PoolCounts;
      readonly now: number;
    }
  /** An instance changed its state; `ordered`: it is one of the ordered launches. */
  | {
      readonly type: 'INSTANCE_MOVED';
      readonly counted: Tallied;
      readonly ordered: boolean;
      readonly now: number;
    }
  | { readonly type: 'INSTANCE_STARTED'; readonly revision: string; readonly now: number }
  | {
      readonly type: 'START_FAILED';
      readonly revision: string;
      readonly reason: string;
      readonly now: number;
      readonly isRefused?: true;
    }
  /** No room for an instance now; launches pause. */
  | { readonly type: 'START_DEFERRED'; readonly reason: string; readonly now: number }
  /** A place for one instance is free. */
  | { readonly type: 'PLACE'; readonly now: number }
  /** The supervisor could not order these launches. */
  | { readonly type: 'LAUNCHES_DROPPED'; readonly count: number; readonly now: number }
  | { readonly type: 'REMOVED' }
  | { readonly type: 'REMOVE_OUTCOME_UNKNOWN'; readonly now: number }
  | { readonly type: 'DEADLINE'; readonly now: number };

export type PoolIntent =
  | { readonly type: 'launch'; readonly count: number }
  /** Answered by PLACE when one is free; earlier requests stay. */
  | { readonly type: 'await-place' }
  /**
   * Retire unclaimed instances while `surplusOf` is above zero: old revisions and starting
   * instances first, then the longest idle.
   */
  | { readonly type: 'trim' }
  /** Retire old unclaimed instances while `replaceableOf` permits it. */
  | { readonly type: 'replace' }
  /**
   * Retire the unclaimed instance that has been unready longest, if `mayRenew`, and for at least
   * startupTimeout.
   */
  | { readonly type: 'renew' }
  | { readonly type: 'end-running' }
  /** Save while the pool has that revision. */
  | { readonly type: 'save-breaker'; readonly breaker: BreakerStatus; readonly revision: string }
  | { readonly type: 'save-conditions'; readonly conditions: readonly PoolCondition[] }
  | { readonly type: 'remove' };

export interface PoolContext extends Tallied {
  readonly record: PoolRecord;
  readonly policy: PoolPolicy;
  readonly ordered: number;
  readonly bucket: TokenBucket;
  /**
   * Most instances starting at once: fewer after a failed start, one more after each that became
   * ready.
   */
  readonly inFlight: number;
  readonly breaker: BreakerStatus;
  /** Time of the last failed start or missing room seen here, in ms; 0 for none. */
  readonly failedAt: number;
  readonly leading: boolean;
  readonly filledOnce: boolean;
  /**
   * True from the first old unclaimed instance until all wanted instances exist and none is old.
   */
  readonly rolling: boolean;
  /** The record's revision has proved to live: an instance lived for a while, or was claimed. */
  readonly proven: boolean;
  /**
   * Before that, and after failures: when the last instance that became ready has proved to live or
   * not.
   */
  readonly provenAt: number;
  /** The last definition that has proved to live. */
  readonly lived: InstanceDefinition | undefined;
  readonly conditions: readonly PoolCondition[];
  /** Time of the last save of conditions. */
  readonly savedAt: number;
  readonly deadline: number | undefined;
}
