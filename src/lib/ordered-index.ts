/** Ordered by time, then by id. */
export interface OrderedEntry {
  readonly at: number;
  readonly id: string;
}

/** With one array of 20,000 entries, each removal at its front took 20 µs. */
const MOST_IN_BLOCK = 512;

/**
 * Oldest first, in sorted blocks that are never empty. Adding at the end and reading at either end
 * cost O(page); other changes cost O(log n) and a move within one block.
 */
export class OrderedIndex {
  readonly #blocks: OrderedEntry[][] = [];
  readonly #most: number;
  #size = 0;

  constructor(mostInBlock = MOST_IN_BLOCK) {
    this.#most = mostInBlock;
  }

  get size(): number {
    return this.#size;
  }

  /** False if the entry exists. */
  add(entry: OrderedEntry): boolean {
    const last = this.#blocks.at(-1);
    const newest = last?.at(-1);
    if (!last || !newest || compare(newest, entry) < 0) {
      if (last && last.length < this.#most) last.push(entry);
      else this.#blocks.push([entry]);
      this.#size += 1;
      return true;
    }
    const { number, block, at, isThere } = this.#placeOf(entry);
    if (isThere) return false;
    block.splice(at, 0, entry);
    if (block.length > this.#most)
      this.#blocks.splice(number + 1, 0, block.splice(this.#most >> 1));
    this.#size += 1;
    return true;
  }

  remove(entry: OrderedEntry): boolean {
    const { number, block, at, isThere } = this.#placeOf(entry);
    if (!isThere) return false;
    if (at === 0) block.shift();
    else block.splice(at, 1);
    if (block.length === 0) this.#blocks.splice(number, 1);
    this.#size -= 1;
    return true;
  }

  first(): OrderedEntry | undefined {
    return this.#blocks[0]?.[0];
  }

  last(): OrderedEntry | undefined {
    return this.#blocks.at(-1)?.at(-1);
  }

  /**
   * Entries older than `limit`, which need not be in the index, newest first. The index must not
   * change during the iteration.
   */
  *olderThan(limit: OrderedEntry): Generator<OrderedEntry, undefined> {
    const { number: last, at: end } = this.#placeOf(limit);
    for (let number = last; number >= 0; number--) {
      const block = this.#blocks[number] ?? []; // empty after the last block
      const from = number === last ? end : block.length;
      for (let at = from - 1; at >= 0; at--) yield block[at]!;
    }
  }

  /** Oldest first. */
  oldest(most: number): readonly OrderedEntry[] {
    const found: OrderedEntry[] = [];
    for (const block of this.#blocks) {
      if (found.length >= most) break;
      found.push(...block.slice(0, most - found.length));
    }
    return found;
  }

  /** Oldest first, from the start if undefined. `entry` need not be in the index. */
  after(entry: OrderedEntry | undefined, most: number): readonly OrderedEntry[] {
    if (!entry) return this.oldest(most);
    const found: OrderedEntry[] = [];
    const { number, at, isThere } = this.#placeOf(entry);
    let from = at + (isThere ? 1 : 0);
    for (
      let later = number;
      later < this.#blocks.length && found.length < most;
      later++, from = 0
    ) {
      found.push(...this.#blocks[later]!.slice(from, from + most - found.length));
    }
    return found;
  }

  /** Newest first, from `offset`. */
  newest(offset: number, limit: number): readonly string[] {
    const ids: string[] = [];
    let skipped = offset;
    for (let number = this.#blocks.length - 1; number >= 0 && ids.length < limit; number--) {
      const block = this.#blocks[number]!;
      for (let at = block.length - 1 - skipped; at >= 0 && ids.length < limit; at--)
        ids.push(block[at]!.id);
      skipped = Math.max(0, skipped - block.length);
    }
    return ids;
  }

  /** `entry` need not be in the index. */
  newerThan(entry: OrderedEntry): number {
    const { number, block, at, isThere } = this.#placeOf(entry);
    let newer = block.length - at - (isThere ? 1 : 0);
    for (let later = number + 1; later < this.#blocks.length; later++)
      newer += this.#blocks[later]!.length;
    return newer;
  }

  /** Oldest first. */
  ids(most: number): readonly string[] {
    return this.oldest(most).map((entry) => entry.id);
  }

  /** In the first block that does not end before the entry, existing or not. */
  #placeOf(entry: OrderedEntry): Place {
    const number = firstFrom(
      this.#blocks.length,
      (n) => compare(this.#blocks[n]!.at(-1)!, entry) >= 0,
    );
    const block = this.#blocks[number];
    if (!block) return { number, block: [], at: 0, isThere: false };
    const at = firstFrom(block.length, (n) => compare(block[n]!, entry) >= 0);
    // the block does not end before it
    return { number, block, at, isThere: compare(block[at]!, entry) === 0 };
  }
}

/**
 * Merges a page, newest first; no id may be in two indexes. Costs O(log n) for each index, for each
 * entry of the page, and for each skipped entry of the moment at which the page begins.
 */
export const newestOf = (
  indexes: readonly OrderedIndex[],
  offset: number,
  limit: number,
): readonly string[] => {
  const [only] = indexes;
  if (indexes.length <= 1) return only?.newest(offset, limit) ?? [];
  const { moment, newer } = momentAt(indexes, offset);
  const heads = new OrderedIndex();
  const restOf = new Map<string, Iterator<OrderedEntry>>();
  const add = (rest: Iterator<OrderedEntry>): void => {
    const { value, done } = rest.next();
    if (done) return;
    heads.add(value);
    restOf.set(value.id, rest);
  };
  for (const index of indexes) add(index.olderThan({ at: moment, id: '' }));
  const ids: string[] = [];
  for (let seen = newer; ids.length < limit; seen++) {
    const newest = heads.last();
    if (!newest) break;
    heads.remove(newest);
    add(restOf.get(newest.id)!); // set together with the head
    restOf.delete(newest.id);
    if (seen >= offset) ids.push(newest.id);
  }
  return ids;
};

/**
 * Finds a moment from which on there are at most `offset` entries, and their number `newer`. Stops
 * when a walk over the rest costs no more than another step.
 */
const momentAt = (
  indexes: readonly OrderedIndex[],
  offset: number,
): { readonly moment: number; readonly newer: number } => {
  let low = indexes.reduce((least, index) => Math.min(least, index.first()?.at ?? least), Infinity);
  const last = indexes.reduce((most, index) => Math.max(most, index.last()?.at ?? most), -Infinity);
  let moment = last + 1;
  let newer = 0;
  while (offset - newer > indexes.length && moment - low > 1) {
    const middle = Math.floor((low + moment) / 2);
    const count = indexes.reduce((sum, index) => sum + index.newerThan({ at: middle, id: '' }), 0);
    if (count > offset) low = middle;
    else [moment, newer] = [middle, count];
  }
  return { moment, newer };
};

interface Place {
  readonly number: number;
  readonly block: OrderedEntry[];
  readonly at: number;
  readonly isThere: boolean;
}

/** `isSo` holds from the returned number on; `count` if it never holds. */
const firstFrom = (count: number, isSo: (n: number) => boolean): number => {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isSo(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
};

const compare = (a: OrderedEntry, b: OrderedEntry): number =>
  a.at - b.at || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
