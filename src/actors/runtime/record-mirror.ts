import type { RecordChange, Records } from '../../contracts/record-store.ts';
import { RecentSet } from '../../lib/recent-set.ts';
import { SharedReads, type SharedReadsDeps } from '../../lib/shared-reads.ts';
import type { Revision } from '../../model/identifiers.ts';
import { isNewer } from '../../model/mirror/revision-order.ts';
import { SerializedWriter } from './serialized-writer.ts';

export interface RecordMirrorDeps<T extends { readonly revision: Revision }> {
  readonly records: Pick<Records<T>, 'get' | 'update' | 'remove' | 'watch' | 'caughtUp'>;
  readonly clock: SharedReadsDeps<T>['clock'];
  /** Names a record here; none of two records at a time. */
  readonly keyOf: (record: T) => string;
  /** Names a record to the store (see RecordStore). */
  readonly storeKeyOf: (record: T) => string;
  /** How many removed records it remembers, which never come back; 0 where names are used again. */
  readonly mostRemoved: number;
  /**
   * Whether a record may be made anew under its key: such a one is shown as the store reports it,
   * and what a write or a read returned does not bring it back. Absent: none may.
   */
  readonly comesAgain?: (record: T) => boolean;
}

/** Hears of a change after the mirror took it in; `before` is what it showed until then. */
export type MirrorFollower<T> = (change: RecordChange<T>, before: T | undefined) => void;

/**
 * Mirrors the records of one kind in memory, as the store last reported them, and changes them one
 * write at a time. Followers hear of each change in the order in which they came.
 */
export class RecordMirror<T extends { readonly revision: Revision }> {
  readonly #deps: RecordMirrorDeps<T>;
  readonly #byKey = new Map<string, T>();
  readonly #removed: RecentSet;
  readonly #reads: SharedReads<T>;
  readonly #writer: SerializedWriter<T>;
  readonly #followers: MirrorFollower<T>[] = [];

  constructor(deps: RecordMirrorDeps<T>) {
    this.#deps = deps;
    const { records, clock, storeKeyOf } = deps;
    this.#removed = new RecentSet(deps.mostRemoved);
    this.#reads = new SharedReads({ clock, read: (key) => records.get(key) });
    this.#writer = new SerializedWriter({ records, storeKeyOf, current: (key) => this.get(key) });
  }

  /** Reads every record, and follows what anybody changes from then on. */
  async start(): Promise<void> {
    await this.#deps.records.watch((change) => {
      this.learn(change);
    });
  }

  /** Takes in what the store reports, in its order, also what a read had it report. */
  learn({ kind, record }: RecordChange<T>): void {
    const key = this.#deps.keyOf(record);
    if (kind === 'gone') this.forget(key, record);
    else if (this.get(key)?.revision !== record.revision) this.#put(record);
  }

  /** Resolves once every record that was written before this call has been taken in. */
  async caughtUp(): Promise<void> {
    await this.#deps.records.caughtUp();
  }

  /** Reports each change from now on, and before that what the mirror shows already. */
  follow(follower: MirrorFollower<T>): void {
    this.#followers.push(follower);
    for (const record of this.#byKey.values()) follower({ kind: 'put', record }, undefined);
  }

  get size(): number {
    return this.#byKey.size;
  }

  get(key: string): T | undefined {
    return this.#byKey.get(key);
  }

  values(): IterableIterator<T> {
    return this.#byKey.values();
  }

  /** Whether it is one of the last that were removed. */
  isRemoved(key: string): boolean {
    return this.#removed.has(key);
  }

  /** Reads a record uncached: what the mirror shows of it then is no older than this call. */
  async refresh(storeKey: string): Promise<void> {
    await this.#deps.records.get(storeKey);
  }

  /** Reads a record as `refresh` does: at most once in 250 ms, for all who miss it. */
  async lookUp(storeKey: string): Promise<T | undefined> {
    return await this.#reads.read(storeKey);
  }

  /** Takes in what a write or a read returned, unless the mirror shows a newer one. */
  take(record: T): void {
    const known = this.get(this.#deps.keyOf(record));
    // the store has reported it before, and perhaps its end since
    if (!known && this.#comesAgain(record)) return;
    if (!known || isNewer(record.revision, known.revision)) this.#put(record);
  }

  /** Takes a record for removed, also one that the mirror did not show. */
  forget(key: string, record = this.get(key)): void {
    if (!record || !this.#comesAgain(record)) this.#removed.add(key);
    const known = this.get(key);
    if (!known || !record) return;
    this.#byKey.delete(key);
    this.#report({ kind: 'gone', record }, known);
  }

  /** Lets a record be shown again whose removal did not come about. */
  restore(record: T): void {
    this.#removed.delete(this.#deps.keyOf(record));
    this.take(record);
  }

  /** Writes a change of a record, as SerializedWriter does. */
  async change(
    key: string,
    change: (record: T) => T | Promise<T>,
    permitted?: () => boolean,
  ): Promise<T | undefined> {
    return await this.#writer.change(key, change, permitted);
  }

  /** Runs a write of a record after those that were begun before it. */
  async runExclusive<R>(key: string, write: () => Promise<R>): Promise<R> {
    return await this.#writer.runExclusive(key, write);
  }

  /**
   * Removes a record as it stands, where `mayGo` still says so. Rejects with RecordConflict or
   * OutcomeUnknown.
   */
  async remove(key: string, mayGo: (record: T) => boolean): Promise<void> {
    await this.runExclusive(key, async () => {
      const record = this.get(key);
      if (record && mayGo(record)) await this.#deps.records.remove(record);
    });
  }

  #put(record: T): void {
    const key = this.#deps.keyOf(record);
    if (this.#removed.has(key) && !this.#comesAgain(record)) return;
    const before = this.get(key);
    this.#byKey.set(key, record);
    this.#report({ kind: 'put', record }, before);
  }

  #comesAgain(record: T): boolean {
    return this.#deps.comesAgain?.(record) === true;
  }

  #report(change: RecordChange<T>, before: T | undefined): void {
    for (const follower of this.#followers) follower(change, before);
  }
}
