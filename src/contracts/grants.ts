/** `reason` is in CamelCase, as in conditions. */
export interface Denial {
  readonly reason: string;
  readonly message: string;
}

/** For one attempt at one write. The requester returns it or counts it. */
export interface Grant<T> {
  permitted(): boolean;
  /** A failed count is reconciled later. Never rejects. */
  landed(record: T): Promise<void>;
  /** If the write may have landed, the reservation is reconciled later. Never rejects. */
  failed(error: unknown): Promise<void>;
}

export interface Grants<T> {
  /**
   * Reserves what `next` needs beyond `before`, which is undefined for a new record. Never denies a
   * decrease.
   */
  ask(next: Omit<T, 'revision'>, before: T | undefined): Promise<Grant<T> | Denial>;
}
