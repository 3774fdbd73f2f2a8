import type { Revision } from '../identifiers.ts';

export interface Version<T> {
  readonly key: string;
  readonly uid: string;
  /** Grows with every write to the store, of any object. */
  readonly revision: Revision;
  readonly record: T | undefined;
}

export interface MirrorChange<T> {
  readonly type: 'put' | 'gone';
  readonly key: string;
  readonly record: T;
  /** The writer already knows the content. */
  readonly quietly?: true;
  /** The store was replaced, perhaps by an older copy: earlier knowledge is invalid. */
  readonly afresh?: true;
}

export interface MirrorDeps<T> {
  /** Synchronous and in order. Exceptions go to `onFailed`. */
  readonly report: (change: MirrorChange<T>) => void;
  /** An object that the watch dropped may still exist; it then stays, unconfirmed. */
  readonly mayStand?: (last: T) => boolean;
  readonly isWatched?: (record: T) => boolean;
}

export interface MirrorList<T> {
  put(version: Version<T>): void;
  /** The list has the object, but it can't be parsed. */
  keep(identity: Pick<Version<T>, 'key' | 'uid'>): void;
  /** Objects that the list lacks are gone. The caller must iterate to the end. */
  complete(revision: Revision): Iterable<undefined>;
}
