import type { PoolRecord } from '../../model/pools/pool.ts';

/** Another part that leads shards together with the supervisor. */
export interface ShardParticipant {
  onShardAcquired(shard: number): void;
  onShardReleased(shard: number): void;
  /** Resolves when its mirrors show all writes from before the call. */
  caughtUp?(): Promise<void>;
  /** An instance of the pool was claimed; `last` is true if no idle one is left. */
  claimed?(poolUid: string, last: boolean): void;
  startFailed?(poolUid: string): void;
  /** The pool's record or counts may have changed. Called often. */
  poolChanged?(record: PoolRecord): void;
}
