import type { PoolRecord } from '../../model/pools/pool.ts';

/** Leads shards together with the supervisor. */
export interface ShardParticipant {
  onShardAcquired(shard: number): void;
  onShardReleased(shard: number): void;
  /** Resolves when its mirrors show all writes from before the call. */
  caughtUp?(): Promise<void>;
  /** `last`: no idle one is left. */
  claimed?(poolUid: string, last: boolean): void;
  startFailed?(poolUid: string): void;
  poolChanged?(record: PoolRecord): void;
}
