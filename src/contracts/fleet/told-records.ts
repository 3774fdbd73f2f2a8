export interface ToldSource<T> {
  /** No older than the call. Rejects if the records are unknown. */
  list(): Promise<readonly T[]>;
  find(id: string): T | undefined;
  follow(changed: (id: string) => void): () => void;
}

export interface ToldCopies<Change> {
  /**
   * `manager`: fingerprint of a key, proved at one of the addresses that the worker dials. Once
   * every address has its manager, copies of unlinked other managers end.
   */
  leadsTo(address: string, manager: string): void;
  /** For a link whose manager proved its identity; `manager` is the fingerprint of its key. */
  begin(manager: string): ToldVisit<Change>;
}

export interface ToldVisit<Change> {
  /** Copies rebuilt because they were kept with another pepper; absent if none. */
  readonly remade?: number;
  /** The change is in force here when this resolves. */
  take(change: Change): Promise<void>;
  /** Ends all copies of this manager except these ids, which are complete. */
  caughtUp(ids: ReadonlySet<string>): Promise<void>;
  /** The manager no longer knows this cluster. */
  left(): Promise<void>;
  end(): void;
}
