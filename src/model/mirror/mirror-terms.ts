import type { Revision } from '../identifiers.ts';

/** One version of one object of a store. */
export interface Version<T> {
  /** Its name, which only one object has at a time. */
  readonly key: string;
  /** Its own, which no other object ever has. */
  readonly uid: string;
  /** Grows with every write of the store, whichever object it is of. */
  readonly revision: Revision;
  /** Undefined: nothing of it is kept, as if it were not there. */
  readonly record: T | undefined;
}

/**
 * `put`: the object is there, as it says. `gone`: it is not there any more; the record as it was
 * last known.
 */
export interface MirrorChange<T> {
  readonly type: 'put' | 'gone';
  readonly key: string;
  readonly record: T;
  /** Whoever wrote it knows what it says. */
  readonly quietly?: true;
  /**
   * It stands so in another store than before, perhaps an older copy: what was known of it counts
   * no more.
   */
  readonly afresh?: true;
}

export interface MirrorDeps<T> {
  /** Called for each change in order, synchronously. What it throws goes to `onFailed`. */
  readonly report: (change: MirrorChange<T>) => void;
  /**
   * Whether an object that the watch says no more of may be there all the same: then it stays, as
   * doubted.
   */
  readonly mayStand?: (last: T) => boolean;
  /** Whether the watch tells of such an object at all. */
  readonly isWatched?: (record: T) => boolean;
}

/** A list that is being taken, page by page. */
export interface MirrorList<T> {
  put(version: Version<T>): void;
  /** It stands in the list, and can't be read. */
  keep(identity: Pick<Version<T>, 'key' | 'uid'>): void;
  /**
   * Takes the list for whole, as of the revision: what is not in it is gone. To be stepped through
   * to its end.
   */
  complete(revision: Revision): Iterable<undefined>;
}
