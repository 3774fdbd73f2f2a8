export interface UidRange {
  readonly first: number;
  readonly count: number;
}

/**
 * Host uids, one per sandbox: taken in turn, so that one comes back as late as possible, and only
 * once it was given back. Held in memory; the notes say after a restart which are taken.
 */
export class HostUids {
  #range: UidRange;
  readonly #taken = new Set<number>();
  #next: number;

  /** `start` spreads the first choice, so that two daemons on one machine seldom meet. */
  constructor(range: UidRange, start: number) {
    this.#range = range;
    this.#next = start;
  }

  /** For those taken from now on. */
  useRange(range: UidRange): void {
    this.#range = range;
  }

  /** Undefined when all are taken. */
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

  /** An adopted sandbox's. */
  mark(uid: number): void {
    this.#taken.add(uid);
  }

  giveBack(uid: number): void {
    this.#taken.delete(uid);
  }
}
