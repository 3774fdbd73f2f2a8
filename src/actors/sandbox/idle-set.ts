import { rendezvous } from '../../lib/rendezvous.ts';
import { OrderedIndex, type OrderedEntry } from '../../lib/ordered-index.ts';

/**
 * Idle instances fall into so many buckets by id, which the live replicas share out: so they seldom
 * reach for the same one.
 */
const BUCKETS = 64;

export const bucketOf = (id: string): number => {
  let hash = 0;
  for (let i = 0; i < id.length; i++) hash = (Math.imul(hash, 31) + id.charCodeAt(i)) >>> 0;
  return hash % BUCKETS;
};

/** One pool's idle instances, by bucket, in each the longest idle first. */
export class IdleSet {
  readonly #buckets: (OrderedIndex | undefined)[] = Array.from(
    { length: BUCKETS },
    () => undefined,
  );
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(entry: OrderedEntry): void {
    const bucket = (this.#buckets[bucketOf(entry.id)] ??= new OrderedIndex());
    if (bucket.add(entry)) this.#size += 1;
  }

  remove(entry: OrderedEntry): void {
    if (this.#buckets[bucketOf(entry.id)]?.remove(entry)) this.#size -= 1;
  }

  /** The longest idle of these buckets; where they have none, of all. */
  first(preferred: readonly number[]): OrderedEntry | undefined {
    return this.#size === 0 ? undefined : (this.#firstOf(preferred) ?? this.#firstOf(ALL_BUCKETS));
  }

  /** The ids of the longest idle, the longest first. */
  ids(most: number): readonly string[] {
    return this.#buckets
      .flatMap((bucket) => bucket?.oldest(most) ?? [])
      .sort(byTime)
      .slice(0, most)
      .map(({ id }) => id);
  }

  #firstOf(buckets: readonly number[]): OrderedEntry | undefined {
    let longest: OrderedEntry | undefined;
    for (const number of buckets) {
      const first = this.#buckets[number]?.first();
      if (first && (!longest || first.at < longest.at)) longest = first;
    }
    return longest;
  }
}

/** An idle instance, and the set that it is in. */
export interface FoundIdle {
  readonly among: IdleSet;
  readonly entry: OrderedEntry;
}

/** Finds the longest idle instance of several sets, in each of these buckets before others. */
export const longestOf = (
  sets: readonly IdleSet[],
  preferred: readonly number[],
): FoundIdle | undefined => {
  let longest: FoundIdle | undefined;
  for (const among of sets) {
    const entry = among.first(preferred);
    if (entry && (!longest || entry.at < longest.entry.at)) longest = { among, entry };
  }
  return longest;
};

const byTime = (a: OrderedEntry, b: OrderedEntry): number => a.at - b.at || (a.id < b.id ? -1 : 1);

export const ALL_BUCKETS: readonly number[] = Array.from(
  { length: BUCKETS },
  (_, bucket) => bucket,
);

/**
 * Which buckets are a replica's own, as replicas come and go. A hint and no more: the claim itself
 * decides who was first.
 */
export class OwnBuckets {
  readonly #replica: string;
  readonly #live: () => readonly string[];
  #of = '';
  #own: readonly number[] = ALL_BUCKETS;

  constructor(replica: string, live: () => readonly string[]) {
    this.#replica = replica;
    this.#live = live;
  }

  get(): readonly number[] {
    const live = this.#live();
    const of = live.join(' ');
    if (of === this.#of) return this.#own;
    this.#of = of;
    this.#own =
      live.length <= 1
        ? ALL_BUCKETS
        : ALL_BUCKETS.filter((bucket) => rendezvous(`bucket ${bucket}`, live) === this.#replica);
    return this.#own;
  }
}
