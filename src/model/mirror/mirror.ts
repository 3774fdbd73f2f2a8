import { isNewer } from './revision-order.ts';
import type { Revision } from '../identifiers.ts';
import type { Version, MirrorChange, MirrorDeps, MirrorList } from './mirror-terms.ts';

interface Entry<T> extends Version<T> {
  readonly isDoubted: boolean;
  readonly epoch: number;
}

/** More than go in the time by which a watch may be late. */
const MOST_DEAD = 8_192;

/**
 * Mirrors the objects of one collection, and reports each change once. It is fed by a watch, by
 * lists, by uncached reads and by the answers to one's own writes, in whatever order these arrive,
 * and has one order for them: an object's newest revision stands, and an object that was told to be
 * gone stays gone. At rest it equals the store.
 *
 * An object that it does not show, of a revision that the watch has passed, is dead: so a late
 * answer brings nothing back. What is known to be dead before the watch tells so is remembered
 * until the watch has told it, or a later list is complete; where it may stand though the watch
 * says no more of it, until that list.
 */
export class Mirror<T> {
  readonly #deps: MirrorDeps<T>;
  readonly #entries = new Map<string, Entry<T>>();
  /** By uid: how many lists had begun when it was learned. */
  readonly #dead = new Map<string, number>();
  readonly #doubted = new Set<string>();
  #revision = '';
  #lists = 0;
  #epoch = 0;
  /**
   * The list that is to show another store than before, until it is complete; Infinity: it is yet
   * to begin.
   */
  #afreshList: number | undefined;
  #shown = 0;
  #wentBack: (why: string) => void = () => undefined;
  #doubts: (key: string) => void = () => undefined;
  #failed: (error: unknown, key: string) => void = () => undefined;

  constructor(deps: MirrorDeps<T>) {
    this.#deps = deps;
  }

  /** All changes up to it were reported; empty before the first list. */
  get revision(): Revision {
    return this.#revision;
  }

  /** Objects that are shown. */
  get size(): number {
    return this.#shown;
  }

  /** Keys of all objects that are known, shown or not. */
  keys(): Iterable<string> {
    return this.#entries.keys();
  }

  get(key: string): T | undefined {
    return this.#entries.get(key)?.record;
  }

  revisionOf(key: string): Revision | undefined {
    return this.#entries.get(key)?.revision;
  }

  /** Objects that may be there though the watch tells nothing of them: only uncached reads do. */
  get doubted(): readonly string[] {
    return [...this.#doubted];
  }

  isDoubted(key: string): boolean {
    return this.#doubted.has(key);
  }

  /** Is told of each object that comes to be doubted. */
  onDoubt(told: (key: string) => void): void {
    this.#doubts = told;
  }

  /** Is told that a read has shown an older store than the one that is mirrored. */
  onWentBack(told: (why: string) => void): void {
    this.#wentBack = told;
  }

  /** Is told what a report threw. */
  onFailed(told: (error: unknown, key: string) => void): void {
    this.#failed = told;
  }

  /** Takes what a watch tells of an object that is there. */
  told(version: Version<T>): void {
    this.#put(version, 'in turn');
  }

  /** Takes a watch's word that the object is no more. */
  toldGone({ key, uid, record }: Version<T>): void {
    if (!this.#deps.mayStand) this.#dead.delete(uid); // else it may tell of it again
    const known = this.#entries.get(key);
    if (known?.uid === uid) this.#end({ ...known, record: record ?? known.record });
  }

  /** Takes a watch's word that it told all that happened up to the revision. */
  advance(revision: Revision): void {
    this.#revision = revision;
  }

  /**
   * The store is another one than before, perhaps an older copy, and is about to be listed: no
   * revision is known to be passed.
   */
  distrust(): void {
    this.#revision = '';
    this.#afreshList = Number.POSITIVE_INFINITY;
  }

  /**
   * Begins to take a list that is read from now on. `afresh`: the store is another one than before,
   * and may be an older.
   */
  list({ afresh = false }: { readonly afresh?: boolean } = {}): MirrorList<T> {
    const number = (this.#lists += 1);
    const listed = new Map<string, string>();
    if (afresh) {
      this.distrust();
      this.#epoch += 1;
      this.#afreshList = number;
      this.#dead.clear();
    }
    const epoch = this.#epoch;
    return {
      put: (version) => {
        listed.set(version.key, version.uid);
        if (this.#entries.get(version.key)?.epoch === epoch || !afresh)
          this.#put(version, 'in turn');
        else this.#replace(version);
      },
      keep: ({ key, uid }) => {
        listed.set(key, uid);
      },
      complete: (revision) => this.#complete({ revision, listed, number }),
    };
  }

  /**
   * Begins an uncached read of one object. Call what it answers with what was found; undefined:
   * there is no such object.
   */
  read(key: string): (found: Version<T> | undefined) => void {
    const [before, passed, epoch] = [this.#entries.get(key), this.#revision, this.#epoch];
    return (found) => {
      if (epoch !== this.#epoch) return; // of which store it speaks nobody can tell
      if (found && before && isNewer(before.revision, found.revision)) {
        this.#wentBack(`${key} went back from revision ${before.revision} to ${found.revision}`);
        return;
      }
      if (found && !before && this.#isUnreported(found, passed))
        this.#wentBack(
          `${key} is of revision ${found.revision}, and the watch, which had passed ` +
            `${passed}, did not tell of it`,
        );
      if (found) return this.#put(found, 'ahead');
      const known = this.#entries.get(key);
      // Of one that was made meanwhile the read says nothing.
      if (before && known?.uid === before.uid) this.#drop(known, 'ahead');
    };
  }

  /** Begins a write that makes an object. Call what it returns with what was made. */
  creates(): (made: Version<T>) => void {
    const [before, epoch] = [this.#revision, this.#epoch];
    return (made) => {
      if (before !== '' && epoch === this.#epoch && isNewer(before, made.revision))
        this.#wentBack(`what was made after revision ${before} has revision ${made.revision}`);
      this.#put(made, 'ahead');
    };
  }

  /** Takes the answer to a write of one's own, or to a read of many. */
  learn(version: Version<T>, { quietly = false }: { readonly quietly?: boolean } = {}): void {
    this.#put(version, 'ahead', quietly);
  }

  /**
   * Takes the answer to one's own removal of an object, by its uid or by the revision that was
   * removed.
   */
  removed(key: string, was: { readonly uid?: string; readonly revision?: Revision }): void {
    const known = this.#entries.get(key);
    if (
      !known ||
      (was.uid !== undefined && known.uid !== was.uid) ||
      (was.revision !== undefined && isNewer(known.revision, was.revision))
    )
      return;
    this.#drop(known, 'ahead');
  }

  /**
   * Takes the word of an uncached read that the object of this uid, which was there before it, is
   * no more.
   */
  lost(key: string, uid: string): void {
    const known = this.#entries.get(key);
    if (known?.uid === uid) this.#drop(known, 'ahead');
    else this.#bury(uid);
  }

  #put(version: Version<T>, comes: 'in turn' | 'ahead', quietly = false): void {
    const { key, uid, revision } = version;
    if (this.#dead.has(uid)) return;
    const known = this.#entries.get(key);
    if (known && !isNewer(revision, known.revision)) {
      if (comes === 'in turn' && known.isDoubted && known.uid === uid) this.#keep(known, false);
      return;
    }
    if (known && known.uid !== uid) this.#drop(known, comes); // made again under its name
    if (comes === 'in turn') return this.#set(version, { isDoubted: false, quietly });
    const isUnwatched =
      version.record !== undefined && this.#deps.isWatched?.(version.record) === false;
    if (!known && !isUnwatched && this.#hasPassed(revision)) return;
    this.#set(version, {
      // Also what was watched: the watch may begin after a list that it was not in any more.
      isDoubted: isUnwatched || (known?.uid === uid && known.isDoubted),
      quietly,
    });
  }

  /** Whatever is known of it. */
  #replace(version: Version<T>): void {
    const known = this.#entries.get(version.key);
    if (known && known.uid !== version.uid) this.#drop(known, 'in turn');
    this.#set(version, { isDoubted: false });
  }

  #set(
    version: Version<T>,
    { isDoubted, quietly = false }: { readonly isDoubted: boolean; readonly quietly?: boolean },
  ): void {
    const { key, record } = version;
    const known = this.#entries.get(key);
    this.#shown += (record === undefined ? 0 : 1) - (known?.record === undefined ? 0 : 1);
    this.#keep(version, isDoubted);
    if (record !== undefined)
      this.#tell({
        type: 'put',
        key,
        record,
        quietly: quietly || undefined,
        afresh: this.#afreshList === undefined ? undefined : true,
      });
    else if (known?.record !== undefined) this.#tell({ type: 'gone', key, record: known.record });
    if (isDoubted && !known?.isDoubted) this.#doubts(key);
  }

  #keep({ key, uid, revision, record }: Version<T>, isDoubted: boolean): void {
    this.#entries.set(key, { key, uid, revision, record, isDoubted, epoch: this.#epoch });
    if (isDoubted) this.#doubted.add(key);
    else this.#doubted.delete(key);
  }

  /** The watch has said its last word of it. */
  #end(last: Entry<T>): void {
    const { key, record, isDoubted } = last;
    if (record === undefined || !this.#deps.mayStand?.(record)) return this.#drop(last, 'in turn');
    if (isDoubted) return;
    this.#keep(this.#entries.get(key) ?? last, true);
    this.#doubts(key);
  }

  #drop({ key, uid, record }: Entry<T>, comes: 'in turn' | 'ahead'): void {
    this.#entries.delete(key);
    this.#doubted.delete(key);
    if (comes === 'ahead') this.#bury(uid);
    if (record === undefined) return;
    this.#shown -= 1;
    this.#tell({ type: 'gone', key, record });
  }

  #bury(uid: string): void {
    this.#dead.set(uid, this.#lists);
    if (this.#dead.size <= MOST_DEAD) return;
    for (const oldest of this.#dead.keys()) {
      this.#dead.delete(oldest);
      return;
    }
  }

  /** Yields after each object that it looked at. */
  *#complete({
    revision,
    listed,
    number,
  }: {
    readonly revision: Revision;
    readonly listed: ReadonlyMap<string, string>;
    readonly number: number;
  }): Generator<undefined> {
    for (const key of [...this.#entries.keys()]) {
      const known = this.#entries.get(key);
      // What was made after the list was read is known from elsewhere.
      if (
        known &&
        listed.get(key) !== known.uid &&
        (known.epoch !== this.#epoch || !isNewer(known.revision, revision))
      )
        this.#end(known);
      yield;
    }
    for (const [uid, before] of this.#dead) if (before < number) this.#dead.delete(uid);
    if (this.#afreshList !== undefined && number < this.#afreshList) return;
    this.#afreshList = undefined;
    this.#revision = revision;
  }

  /**
   * It stands since before the revision that the watch had passed, and is not known: so the watch
   * was of another store.
   */
  #isUnreported({ uid, revision, record }: Version<T>, passed: Revision): boolean {
    return (
      passed !== '' &&
      !isNewer(revision, passed) &&
      !this.#dead.has(uid) &&
      (record === undefined || this.#deps.isWatched?.(record) !== false)
    );
  }

  #hasPassed(revision: Revision): boolean {
    return this.#revision !== '' && !isNewer(revision, this.#revision);
  }

  #tell(change: MirrorChange<T>): void {
    try {
      this.#deps.report(change);
    } catch (error) {
      this.#failed(error, change.key);
    }
  }
}
