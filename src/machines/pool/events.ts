import type { InstanceDefinition } from '../../model/templates/template.ts';
import type { BreakerStatus, PoolCounts, PoolRecord } from '../../model/pools/pool.ts';
import type { PoolCondition } from '../../model/pools/pool-condition.ts';
import type { PoolPolicy, TokenBucket } from './arithmetic.ts';

/** A pool's instances, all of them and those of the pool's revision. */
export interface Tallied {
  readonly counts: PoolCounts;
  readonly updated: PoolCounts;
}

/** `tallied`: the instances that are there already. */
export interface PoolInput {
  readonly record: PoolRecord;
  readonly policy: PoolPolicy;
  readonly now: number;
  readonly counted?: Tallied;
}

/** `revision`: the updateRevision of the instance that is spoken of. */
export type PoolEvent =
  | { readonly type: 'LEAD'; readonly now: number }
  | { readonly type: 'FOLLOW' }
  /** `updated`: the instances of this record's revision. */
  | {
      readonly type: 'RECORD';
      readonly record: PoolRecord;
      readonly updated: PoolCounts;
      readonly now: number;
    }
  /** An instance counts elsewhere than before; `ordered`: it is one of the launches asked for. */
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
  /** There is no place for an instance now: none is launched for a while. */
  | { readonly type: 'START_DEFERRED'; readonly reason: string; readonly now: number }
  /** One instance that needs a place may be launched now. */
  | { readonly type: 'PLACE'; readonly now: number }
  /** The supervisor couldn't order these launches after all. */
  | { readonly type: 'LAUNCHES_DROPPED'; readonly count: number; readonly now: number }
  | { readonly type: 'REMOVED' }
  | { readonly type: 'REMOVE_OUTCOME_UNKNOWN'; readonly now: number }
  | { readonly type: 'DEADLINE'; readonly now: number };

export type PoolIntent =
  | { readonly type: 'launch'; readonly count: number }
  /** To be answered by PLACE once there is a place; what was asked for already stays asked for. */
  | { readonly type: 'await-place' }
  /**
   * Retire unclaimed instances while `surplusOf` the pool is above zero: older revisions and
   * starting ones first, then the longest idle.
   */
  | { readonly type: 'trim' }
  /** Retire unclaimed instances of older revisions while `replaceableOf` the pool allows it. */
  | { readonly type: 'replace' }
  /**
   * Retire the unclaimed instance that has not been ready for the longest, if `mayRenew` and for
   * startupTimeout at least.
   */
  | { readonly type: 'renew' }
  | { readonly type: 'end-running' }
  /** To be saved as long as the pool has that revision. */
  | { readonly type: 'save-breaker'; readonly breaker: BreakerStatus; readonly revision: string }
  | { readonly type: 'save-conditions'; readonly conditions: readonly PoolCondition[] }
  | { readonly type: 'remove' };

export interface PoolContext extends Tallied {
  readonly record: PoolRecord;
  readonly policy: PoolPolicy;
  readonly ordered: number;
  readonly bucket: TokenBucket;
  /**
   * How many instances may be starting at once: fewer after one failed to start, one more for each
   * that became ready.
   */
  readonly inFlight: number;
  readonly breaker: BreakerStatus;
  /** When a start last failed, or found no place, as far as is known here (ms); 0: none did. */
  readonly failedAt: number;
  readonly leading: boolean;
  readonly filledOnce: boolean;
  /**
   * From the first unclaimed instance of an older revision until all that there should be is there,
   * and none is of an older one.
   */
  readonly rolling: boolean;
  /** Instances of the record's revision are known to live: one did for a while, or was claimed. */
  readonly proven: boolean;
  /**
   * While that is not so, and after failures: when it is known whether the last one that became
   * ready lives.
   */
  readonly provenAt: number;
  /** The last definition whose instances are known to live. */
  readonly lived: InstanceDefinition | undefined;
  readonly conditions: readonly PoolCondition[];
  /** When conditions were last put out to be saved. */
  readonly savedAt: number;
  readonly deadline: number | undefined;
}
