/** `epoch` grows each time the lease is won; work of an older epoch must not be carried out. */
export interface Lease {
  readonly epoch: number;
  held(): boolean;
}

/** In order per shard. Exceptions are logged. */
export interface LeaseListener {
  gained(shard: number): void;
  /**
   * `wanted-elsewhere`: another replica is to have the lease. This replica must call `giveUp` soon;
   * the lease ends by itself after some seconds.
   */
  lost(shard: number, because: 'gone' | 'wanted-elsewhere'): void;
}

/**
 * One replica leads each shard (src/model/shards.ts). A lease avoids duplicate work; safety never
 * depends on it.
 */
export interface Leases {
  /** Undefined if this replica does not hold it. */
  lease(shard: number): Lease | undefined;
  /**
   * Reports each held lease at once. Returns a function that unsubscribes. Takes leases only while
   * there is a listener.
   */
  follow(listener: LeaseListener): () => void;
  /**
   * Another replica can take it at once. Does nothing if this replica does not hold it. Never
   * rejects.
   */
  giveUp(shard: number): Promise<void>;
  /** Takes no more leases, and offers the held ones to other replicas. Idempotent. */
  leave(): void;
  /** Idempotent. */
  join(): void;
  /** As last seen, including this replica; sorted. */
  replicas(): readonly string[];
  holders(): ReadonlyMap<number, string>;
}
