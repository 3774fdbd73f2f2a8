export interface UidRange {
  readonly first: number;
  readonly count: number;
}

/**
 * Taken in turn, so a uid is reused as late as possible. After a restart, the notes say which are
 * taken.
 */
export class HostUids {
  #range: UidRange;
  readonly #taken = new Set<number>();
  #next: number;

  /** `start` keeps two daemons of one machine from colliding often. */
  constructor(range: UidRange, start: number) {
    this.#range = range;
    this.#next = start;
  }

  /** Applies to uids taken later. */
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

  mark(uid: number): void {
    this.#taken.add(uid);
  }

  giveBack(uid: number): void {
    this.#taken.delete(uid);
  }
}
