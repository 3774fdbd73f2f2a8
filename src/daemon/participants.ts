import type { ShardParticipant } from '../actors/runtime/shard-participant.ts';
import type { PoolRecord } from '../model/pools/pool.ts';

/** Created after the supervisor, whose shards they share. */
export class Participants implements ShardParticipant {
  #all: readonly Partial<ShardParticipant>[] = [];

  /** Call once, before the supervisor starts. */
  join(all: readonly Partial<ShardParticipant>[]): void {
    this.#all = all;
  }

  onShardAcquired(shard: number): void {
    for (const each of this.#all) each.onShardAcquired?.(shard);
  }

  onShardReleased(shard: number): void {
    for (const each of this.#all) each.onShardReleased?.(shard);
  }

  claimed(poolUid: string, last: boolean): void {
    for (const each of this.#all) each.claimed?.(poolUid, last);
  }

  startFailed(poolUid: string): void {
    for (const each of this.#all) each.startFailed?.(poolUid);
  }

  poolChanged(record: PoolRecord): void {
    for (const each of this.#all) each.poolChanged?.(record);
  }

  async caughtUp(): Promise<void> {
    await Promise.all(this.#all.map(async (each) => await each.caughtUp?.()));
  }
}
