/**
 * Why a record gets no more than it has; `reason` is a word in CamelCase, as conditions have it.
 */
export interface Denial {
  readonly reason: string;
  readonly message: string;
}

/**
 * Holds what one attempt at one write may take; given back, or counted, by the one who asked for
 * it.
 */
export interface Grant<T> {
  /** Whether the write may be sent at this moment. */
  permitted(): boolean;
  /** Counts what was written. Never rejects: what could not be told is settled later. */
  landed(record: T): Promise<void>;
  /**
   * Gives back what this attempt reserved, unless its write may have landed: then it is settled
   * later. Never rejects.
   */
  failed(error: unknown): Promise<void>;
}

/** Lets records that somebody made or edited by hand take what their owner's quotas allow. */
export interface Grants<T> {
  /**
   * Reserves what `next` takes beyond `before`, which is undefined for a new one. Giving back is
   * never denied.
   */
  ask(next: Omit<T, 'revision'>, before: T | undefined): Promise<Grant<T> | Denial>;
}
