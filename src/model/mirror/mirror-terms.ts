import type { Revision } from '../identifiers.ts';

/** One version of a stored object. */
export interface Version<T> {
  /** Its name, unique at any time. */
  readonly key: string;
  /** Its id, never reused. */
  readonly uid: string;
  /** Grows with every write to the store, of any object. */
  readonly revision: Revision;
  /** Undefined if the mirror must ignore the object, as if it did not exist. */
  readonly record: T | undefined;
}

/**
 * `put`: the object exists with this record. `gone`: the object no longer exists; with its last
 * known record.
 */
export interface MirrorChange<T> {
  readonly type: 'put' | 'gone';
  readonly key: string;
  readonly record: T;
  /** The writer already knows the content. */
  readonly quietly?: true;
  /**
   * The store was replaced, perhaps by an older copy: earlier knowledge of the object is invalid.
   */
  readonly afresh?: true;
}

export interface MirrorDeps<T> {
  /** Called synchronously for each change, in order. Exceptions go to `onFailed`. */
  readonly report: (change: MirrorChange<T>) => void;
  /** Whether an object may still exist after the watch dropped it; it then stays, unconfirmed. */
  readonly mayStand?: (last: T) => boolean;
  /** Whether the watch covers such an object. */
  readonly isWatched?: (record: T) => boolean;
}

/** A list in progress, read page by page. */
export interface MirrorList<T> {
  put(version: Version<T>): void;
  /** The list has the object, but it can't be parsed. */
  keep(identity: Pick<Version<T>, 'key' | 'uid'>): void;
  /**
   * Marks the list as complete as of the revision: objects that it lacks are gone. The caller must
   * iterate to its end.
   */
  complete(revision: Revision): Iterable<undefined>;
}
