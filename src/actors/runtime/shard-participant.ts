import type { PoolRecord } from '../../model/pools/pool.ts';

/** Leads as the supervisor does, with actors of its own. */
export interface ShardParticipant {
  onShardAcquired(shard: number): void;
  onShardReleased(shard: number): void;
  /** Resolves once what it goes by shows all that was written before the call. */
  caughtUp?(): Promise<void>;
  /** An instance of the pool was claimed; `last`: none is idle any more. */
  claimed?(poolUid: string, last: boolean): void;
  startFailed?(poolUid: string): void;
  /** The pool, or how its instances stand, is perhaps not what it was. Called often. */
  poolChanged?(record: PoolRecord): void;
}
