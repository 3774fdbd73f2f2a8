/** Tells the links of a manager of those of its records that workers keep copies of. */
export interface ToldSource<T> {
  /** Every such record as it is now; no older than the call. Rejects where that is not known. */
  list(): Promise<readonly T[]>;
  /** Undefined where there is none of this id, or it is told of no more. */
  find(id: string): T | undefined;
  /** Calls `changed` with each id of which `find` says something else from then on. */
  follow(changed: (id: string) => void): () => void;
}

/** Keeps a worker's copies of what its managers tell. */
export interface ToldCopies<Change> {
  /**
   * A manager proved to be at one of the addresses that the worker dials. Once each of them is
   * known to lead to one, copies of any other manager to which no link leads end. `manager`:
   * fingerprint of its key.
   */
  leadsTo(address: string, manager: string): void;
  /** Begins with a link whose manager proved to be it. `manager`: fingerprint of its key. */
  begin(manager: string): ToldVisit<Change>;
}

/** Takes in what one link tells. */
export interface ToldVisit<Change> {
  /** How many copies it made anew, since they were kept with another pepper; absent: none. */
  readonly remade?: number;
  /** Has it hold here. */
  take(change: Change): Promise<void>;
  /** Ends all copies of this manager besides these, which are all that there are. */
  caughtUp(ids: ReadonlySet<string>): Promise<void>;
  /** The manager does not know this cluster any more. */
  left(): Promise<void>;
  /** The link is over. */
  end(): void;
}
