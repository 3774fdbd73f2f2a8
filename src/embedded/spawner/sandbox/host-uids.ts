export interface UidRange {
  readonly first: number;
  readonly count: number;
}

/**
 * Host uids, one per sandbox. Uids are taken in turn, so a released uid is reused as late as
 * possible. Kept in memory; after a restart, the notes say which uids are taken.
 */
export class HostUids {
  #range: UidRange;
  readonly #taken = new Set<number>();
  #next: number;

  /** `start` spreads the first choice, so that two daemons on one machine seldom collide. */
  constructor(range: UidRange, start: number) {
    this.#range = range;
    this.#next = start;
  }

  /** Applies to uids taken from now on. */
  useRange(range: UidRange): void {
    this.#range = range;
  }

  /** Undefined if all are taken. */
  take(): number | undefined {
    const { first, count } = this.#range;
    for (let tries = 0; tries < count; tries += 1) {
      const uid = first + (this.#next % count);
      this.#next = (this.#next + 1) % count;
      if (this.#taken.has(uid)) continue;
      this.#taken.add(uid);
      return uid;
    }
    return undefined;
  }

  /** Marks the uid of an adopted sandbox as taken. */
  mark(uid: number): void {
    this.#taken.add(uid);
  }

  giveBack(uid: number): void {
    this.#taken.delete(uid);
  }
}
