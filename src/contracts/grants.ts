/** Reason why a record's quota can't grow; `reason` is in CamelCase, as in conditions. */
export interface Denial {
  readonly reason: string;
  readonly message: string;
}

/** Quota for one attempt at one write. The requester returns it or counts it. */
export interface Grant<T> {
  /** Whether the write may be sent now. */
  permitted(): boolean;
  /** Counts the written record. Never rejects: a failed count is reconciled later. */
  landed(record: T): Promise<void>;
  /**
   * Releases the reservation of this attempt. If the write may have landed, the reservation is
   * reconciled later. Never rejects.
   */
  failed(error: unknown): Promise<void>;
}

/** Grants quota of the owner to records that somebody made or edited by hand. */
export interface Grants<T> {
  /**
   * Reserves the quota that `next` needs beyond `before`; `before` is undefined for a new record.
   * Never denies a decrease.
   */
  ask(next: Omit<T, 'revision'>, before: T | undefined): Promise<Grant<T> | Denial>;
}
