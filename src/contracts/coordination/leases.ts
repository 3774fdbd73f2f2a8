/**
 * A held lease. `epoch` grows each time the lease is won; work of an older epoch must not be
 * carried out.
 */
export interface Lease {
  readonly epoch: number;
  /** Whether this replica holds the lease at this moment. */
  held(): boolean;
}

/** Called after each change, in order per shard. Exceptions are logged. */
export interface LeaseListener {
  gained(shard: number): void;
  /**
   * `gone`: the lease has ended. `wanted-elsewhere`: another replica is to have it. This replica
   * then still holds it until `giveUp`, which must come soon; the lease ends by itself after some
   * seconds.
   */
  lost(shard: number, because: 'gone' | 'wanted-elsewhere'): void;
}

/**
 * Which replica leads which shard (src/model/shards.ts). A lease avoids duplicate work; safety
 * never depends on it.
 */
export interface Leases {
  /** The shard's lease, if this replica holds it. */
  lease(shard: number): Lease | undefined;
  /**
   * Reports each held lease at once, then each change. Returns a function that unsubscribes. Takes
   * leases only while there is a listener.
   */
  follow(listener: LeaseListener): () => void;
  /**
   * Releases the lease, so that another replica can take it at once. Does nothing if this replica
   * does not hold it. Never rejects.
   */
  giveUp(shard: number): Promise<void>;
  /**
   * Takes no more leases, and offers the held ones to other replicas, for an orderly handover.
   * Idempotent.
   */
  leave(): void;
  /** Takes leases again after `leave`. Idempotent. */
  join(): void;
  /** Last seen live replicas, including this replica; sorted. */
  replicas(): readonly string[];
  /** Last seen holder of each shard; omits shards without a holder. */
  holders(): ReadonlyMap<number, string>;
}
