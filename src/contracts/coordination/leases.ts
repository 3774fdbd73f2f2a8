/**
 * Where a lease stands. `epoch` moves each time it is won; what carries an older one must not be
 * carried out.
 */
export interface Lease {
  readonly epoch: number;
  /** Still ours at this very moment. */
  held(): boolean;
}

/** Called when it has happened, in order for each shard. What it throws is logged. */
export interface LeaseListener {
  gained(shard: number): void;
  /**
   * It is no more, or another replica is to have it: then `lease` is held until `giveUp` is called,
   * which is to be soon; after some seconds it is gone.
   */
  lost(shard: number, because: 'gone' | 'wanted-elsewhere'): void;
}

/**
 * Who leads which shard (src/model/shards.ts). A lease saves double work; nothing is safe because
 * of it.
 */
export interface Leases {
  /** The shard's lease if this replica holds it. */
  lease(shard: number): Lease | undefined;
  /**
   * Reports each lease that is held now, at once, then each change. Returns how to end it. Leases
   * are taken while somebody follows.
   */
  follow(listener: LeaseListener): () => void;
  /**
   * Gives the lease back, for another replica to take at once. One that isn't held counts as given
   * up. Never rejects.
   */
  giveUp(shard: number): Promise<void>;
  /**
   * Takes no more leases, and offers what is held to other replicas, so that all can be given up in
   * order. May be repeated.
   */
  leave(): void;
  /** Takes leases again after `leave`. May be repeated. */
  join(): void;
  /** The live replicas, this one among them, as last seen; sorted. */
  replicas(): readonly string[];
  /** Who holds which shard, as last seen; a shard that nobody holds is left out. */
  holders(): ReadonlyMap<number, string>;
}
