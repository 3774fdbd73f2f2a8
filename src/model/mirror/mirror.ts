import { isNewer } from './revision-order.ts';
import type { Revision } from '../identifiers.ts';
import type { Version, MirrorChange, MirrorDeps, MirrorList } from './mirror-terms.ts';

interface Entry<T> extends Version<T> {
  readonly isDoubted: boolean;
  readonly epoch: number;
}

const MOST_DEAD = 8_192;

/**
 * Mirrors one collection, and reports each change once. A watch, lists, uncached reads and the
 * process's own writes arrive in any order: an object's newest revision wins, and an object that
 * was reported gone stays gone.
 *
 * An unknown object of a revision that the watch has passed is dead, so a late answer never
 * restores it. A deletion that is known before the watch reports it is remembered until the watch
 * does, or a later list is complete. If the object may exist although the watch dropped it, only
 * such a list counts.
 */
export class Mirror<T> {
  readonly #deps: MirrorDeps<T>;
  readonly #entries = new Map<string, Entry<T>>();
  /** Number of lists begun before, by uid. */
  readonly #dead = new Map<string, number>();
  readonly #doubted = new Set<string>();
  #revision = '';
  #lists = 0;
  #epoch = 0;
  /** Number of the list that shows a replaced store; Infinity before that list begins. */
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

  get size(): number {
    return this.#shown;
  }

  /** Includes invisible objects. */
  keys(): Iterable<string> {
    return this.#entries.keys();
  }

  get(key: string): T | undefined {
    return this.#entries.get(key)?.record;
  }

  revisionOf(key: string): Revision | undefined {
    return this.#entries.get(key)?.revision;
  }

  /** The watch does not cover these; only uncached reads can confirm them. */
  get doubted(): readonly string[] {
    return [...this.#doubted];
  }

  isDoubted(key: string): boolean {
    return this.#doubted.has(key);
  }

  onDoubt(told: (key: string) => void): void {
    this.#doubts = told;
  }

  onWentBack(told: (why: string) => void): void {
    this.#wentBack = told;
  }

  onFailed(told: (error: unknown, key: string) => void): void {
    this.#failed = told;
  }

  told(version: Version<T>): void {
    this.#put(version, 'in turn');
  }

  toldGone({ key, uid, record }: Version<T>): void {
    if (!this.#deps.mayStand) this.#dead.delete(uid); // otherwise the watch may report it again
    const known = this.#entries.get(key);
    if (known?.uid === uid) this.#end({ ...known, record: record ?? known.record });
  }

  advance(revision: Revision): void {
    this.#revision = revision;
  }

  /** The store was replaced, perhaps by an older copy: no revision counts as passed. */
  distrust(): void {
    this.#revision = '';
    this.#afreshList = Number.POSITIVE_INFINITY;
  }

  /** `afresh`: the store was replaced, and may be older. */
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

  /** Call the returned function with the result; undefined if the object does not exist. */
  read(key: string): (found: Version<T> | undefined) => void {
    const [before, passed, epoch] = [this.#entries.get(key), this.#revision, this.#epoch];
    return (found) => {
      if (epoch !== this.#epoch) return; // the result may come from either store
      if (found && before && isNewer(before.revision, found.revision)) {
        this.#wentBack(`${key} went back from revision ${before.revision} to ${found.revision}`);
        return;
      }
      if (found && !before && this.#isUnreported(found, passed))
        this.#wentBack(
          `${key} has revision ${found.revision}, which the watch did not report although ` +
            `it had passed ${passed}`,
        );
      if (found) return this.#put(found, 'ahead');
      const known = this.#entries.get(key);
      // The read shows nothing about an object that was created in the meantime.
      if (before && known?.uid === before.uid) this.#drop(known, 'ahead');
    };
  }

  creates(): (made: Version<T>) => void {
    const [before, epoch] = [this.#revision, this.#epoch];
    return (made) => {
      if (before !== '' && epoch === this.#epoch && isNewer(before, made.revision))
        this.#wentBack(`an object created after revision ${before} has revision ${made.revision}`);
      this.#put(made, 'ahead');
    };
  }

  learn(version: Version<T>, { quietly = false }: { readonly quietly?: boolean } = {}): void {
    this.#put(version, 'ahead', quietly);
  }

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

  /** An uncached read shows that the object no longer exists. */
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
    if (known && known.uid !== uid) this.#drop(known, comes); // created again under its name
    if (comes === 'in turn') return this.#set(version, { isDoubted: false, quietly });
    const isUnwatched =
      version.record !== undefined && this.#deps.isWatched?.(version.record) === false;
    if (!known && !isUnwatched && this.#hasPassed(revision)) return;
    this.#set(version, {
      // Also if the watch covered it before: the watch may begin after a list that no longer had
      // it.
      isDoubted: isUnwatched || (known?.uid === uid && known.isDoubted),
      quietly,
    });
  }

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
      // Objects that were created after the list was read come from other sources.
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
   * The watch has passed the object's revision, yet the object is unknown: so the watch covered
   * another store.
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
