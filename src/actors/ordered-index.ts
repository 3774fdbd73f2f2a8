/** What an index orders by: a moment first, then the id. */
export interface OrderedEntry { readonly at: number; readonly id: string }

/**
 * A sorted set of ids, oldest first. Adding at the end, taking from the front and reading a page from either end cost
 * O(page); adding or removing elsewhere O(log n) and one block move.
 */
export class OrderedIndex {
  readonly #entries: OrderedEntry[] = [];

  get size(): number { return this.#entries.length; }

  /** False where it is there already. */
  add(entry: OrderedEntry): boolean {
    const last = this.#entries.at(-1);
    if (last === undefined || compare(last, entry) < 0) {
      this.#entries.push(entry);
      return true;
    }
    const at = this.#position(entry);
    const there = this.#entries[at];
    if (there && compare(there, entry) === 0) return false;
    this.#entries.splice(at, 0, entry);
    return true;
  }

  remove(entry: OrderedEntry): boolean {
    const at = this.#position(entry);
    const there = this.#entries[at];
    if (!there || compare(there, entry) !== 0) return false;
    if (at === 0) this.#entries.shift();
    else this.#entries.splice(at, 1);
    return true;
  }

  first(): OrderedEntry | undefined { return this.#entries[0]; }

  /** A copy, oldest first. */
  entries(): readonly OrderedEntry[] { return [...this.#entries]; }

  /** Newest first, from `offset`. */
  newest(offset: number, limit: number): readonly string[] {
    const ids: string[] = [];
    for (let i = this.#entries.length - 1 - offset; i >= 0 && ids.length < limit; i--) ids.push(this.#entries[i]!.id); // i is in range
    return ids;
  }

  /** How many are newer than the entry, which need not be in it. */
  newerThan(entry: OrderedEntry): number {
    const at = this.#position(entry);
    const there = this.#entries[at];
    return this.#entries.length - at - (there && compare(there, entry) === 0 ? 1 : 0);
  }

  /** A copy of the ids, oldest first. */
  ids(): readonly string[] { return this.#entries.map((entry) => entry.id); }

  /** Where the entry stands, or would. */
  #position(entry: OrderedEntry): number {
    let low = 0;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compare(this.#entries[middle]!, entry) < 0) low = middle + 1; // middle is in range
      else high = middle;
    }
    return low;
  }
}

const compare = (a: OrderedEntry, b: OrderedEntry): number =>
  a.at - b.at || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
