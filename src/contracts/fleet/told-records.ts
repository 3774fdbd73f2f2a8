/** Publishes to a manager's links the records of which workers keep copies. */
export interface ToldSource<T> {
  /** Every such record now; no older than the call. Rejects if the records are unknown. */
  list(): Promise<readonly T[]>;
  /** Undefined if there is no such record, or if it is no longer published. */
  find(id: string): T | undefined;
  /** Calls `changed` with an id each time `find` returns something else for it. */
  follow(changed: (id: string) => void): () => void;
}

/** A worker's copies of its managers' records. */
export interface ToldCopies<Change> {
  /**
   * A manager proved its identity at one of the addresses that the worker dials. Once every address
   * has its manager, copies of unlinked other managers end. `manager` is the fingerprint of its
   * key.
   */
  leadsTo(address: string, manager: string): void;
  /**
   * Begins a session for a link whose manager proved its identity. `manager` is the fingerprint of
   * its key.
   */
  begin(manager: string): ToldVisit<Change>;
}

/** Applies the messages of one link. */
export interface ToldVisit<Change> {
  /** Number of copies rebuilt because they were kept with another pepper; absent if none. */
  readonly remade?: number;
  /** Puts the change into force here. */
  take(change: Change): Promise<void>;
  /** Ends all copies of this manager except these ids, which are complete. */
  caughtUp(ids: ReadonlySet<string>): Promise<void>;
  /** The manager no longer knows this cluster. */
  left(): Promise<void>;
  /** The link has closed. */
  end(): void;
}
