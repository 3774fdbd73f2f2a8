import { SANDBOX_STATUSES, type SandboxStatus } from '../../model/sandbox.ts';
import { ClaimMarks, LiveLists, type LiveFilter } from './live-lists.ts';
import { isOfPool, samePlace, type Placement } from './sandbox-snapshot.ts';
import { OrderedIndex, type OrderedEntry } from '../../lib/ordered-index.ts';

export interface LiveCounts {
  readonly byStatus: ReadonlyMap<SandboxStatus, number>;
  readonly byNamespace: ReadonlyMap<string, number>;
}

/** How an unclaimed instance counts; in the order in which they are given up. */
export const UNCLAIMED = ['starting', 'unavailable', 'idle'] as const;
export type Unclaimed = (typeof UNCLAIMED)[number];

interface RevisionIndex {
  readonly starting: OrderedIndex;
  readonly idle: IdleSet;
  readonly unavailable: OrderedIndex;
}

/** `unclaimed`: by updateRevision. */
interface PoolIndex {
  readonly unclaimed: Map<string, RevisionIndex>;
  readonly claimed: OrderedIndex;
  readonly held: Set<string>;
}

/**
 * The live instances by pool, tenant and phase, kept up to date by each change: nothing here is
 * ever searched. Lists are by claimedAt, else createdAt.
 */
export class SandboxIndex {
  readonly claimMarks = new ClaimMarks();
  readonly #placements = new Map<string, Placement>();
  readonly #pools = new Map<string, PoolIndex>();
  readonly #lists = new LiveLists((id) => this.#placements.get(id));
  readonly #byNamespace = new Map<string, number>();

  get size(): number {
    return this.#placements.size;
  }

  placementOf(id: string): Placement | undefined {
    return this.#placements.get(id);
  }

  /** Sets where an instance stands now; returns where it stood before. */
  place(next: Placement): Placement | undefined {
    const before = this.#placements.get(next.id);
    if (before && samePlace(before, next)) return before;
    this.#placements.set(next.id, next);
    this.claimMarks.place(before, next);
    if (before) this.#removeFromPool(before);
    this.#addToPool(next);
    this.#lists.move(before, next);
    this.#recount(before, next);
    return before;
  }

  remove(id: string): Placement | undefined {
    const before = this.#placements.get(id);
    if (!before) return undefined;
    this.#placements.delete(id);
    this.claimMarks.end(before);
    this.#removeFromPool(before);
    this.#lists.move(before, undefined);
    this.#recount(before, undefined);
    this.#dropBare(before.poolUid);
    return before;
  }

  /**
   * Acquires the longest idle instance of the pool, of this revision before others and of these
   * buckets before others. It is the asker's until it is released, wherever it moves meanwhile.
   */
  acquire(
    poolUid: string,
    revision: string,
    preferred: readonly number[] = ALL_BUCKETS,
  ): string | undefined {
    const pool = this.#pools.get(poolUid);
    const first = pool && longestIdle(pool, revision, preferred);
    if (!first) return undefined;
    first.among.remove(first.entry);
    pool.held.add(first.entry.id);
    return first.entry.id;
  }

  /** The one that `acquire` would acquire now, which stays as it is. */
  nextIdle(
    poolUid: string,
    revision: string,
    preferred: readonly number[] = ALL_BUCKETS,
  ): string | undefined {
    const pool = this.#pools.get(poolUid);
    return pool && longestIdle(pool, revision, preferred)?.entry.id;
  }

  /** Counts those of the pool that are idle and not held. */
  idleIn(poolUid: string): number {
    let count = 0;
    for (const { idle } of this.#pools.get(poolUid)?.unclaimed.values() ?? []) count += idle.size;
    return count;
  }

  /** The one of the pool's that has been held the longest and lives; undefined where none is. */
  heldOf(poolUid: string): string | undefined {
    return this.heldIn(poolUid).next().value;
  }

  /** All of the pool's that are held and live, the one that has been held the longest first. */
  *heldIn(poolUid: string): Generator<string, undefined, undefined> {
    for (const id of this.#pools.get(poolUid)?.held ?? []) if (this.#placements.has(id)) yield id;
  }

  isHeld(id: string): boolean {
    const placement = this.#placements.get(id);
    return placement !== undefined && this.#pools.get(placement.poolUid)?.held.has(id) === true;
  }

  /**
   * Ends what `acquire` began. Answers whether the instance is unclaimed now, and so in its place
   * again.
   */
  release(poolUid: string, id: string): boolean {
    if (!this.#pools.get(poolUid)?.held.delete(id)) return false;
    const placement = this.#placements.get(id);
    if (placement?.status === 'Idle') this.#addToPool(placement);
    this.#dropBare(poolUid);
    return placement?.status === 'Idle';
  }

  /**
   * Unclaimed and not held: starting ones first, newest first; then the unavailable; then the
   * longest idle. Of each those of other revisions before those of this one.
   */
  dismissable(poolUid: string, revision: string, most: number): readonly string[] {
    const pool = this.#pools.get(poolUid);
    if (!pool) return [];
    const current = pool.unclaimed.get(revision);
    const pools = [...others(pool, revision), ...(current ? [current] : [])];
    return UNCLAIMED.flatMap((as) => pools.flatMap((one) => idsOf(one, as, most))).slice(0, most);
  }

  /** Unclaimed ones born at that moment or before, in the order of `dismissable`. */
  createdBefore(
    as: Unclaimed,
    poolUid: string,
    { revision, moment }: { readonly revision: string; readonly moment: number },
  ): readonly string[] {
    const pool = this.#pools.get(poolUid);
    if (!pool) return [];
    const current = pool.unclaimed.get(revision);
    return [...others(pool, revision), ...(current ? [current] : [])]
      .flatMap((one) => idsOf(one, as, one[as].size))
      .filter((id) => (this.#placements.get(id)?.createdAt ?? Number.POSITIVE_INFINITY) <= moment);
  }

  /**
   * The one that has not been ready for the longest, of those that have not been since that moment
   * or before.
   */
  longestUnready(poolUid: string, moment: number): string | undefined {
    const unavailable = [...(this.#pools.get(poolUid)?.unclaimed.values() ?? [])].flatMap(
      ({ unavailable: all }) => all.ids(all.size),
    );
    const unready = unavailable
      .flatMap((id) => this.#placements.get(id) ?? [])
      .filter(({ unreadyAt }) => unreadyAt !== undefined && unreadyAt <= moment);
    return unready.sort((a, b) => (a.unreadyAt ?? 0) - (b.unreadyAt ?? 0))[0]?.id;
  }

  /** Unclaimed ones of other revisions than this one, in the order of `dismissable`. */
  stale(
    poolUid: string,
    revision: string,
    { as, most }: { readonly as: Unclaimed; readonly most: number },
  ): readonly string[] {
    const pool = this.#pools.get(poolUid);
    return pool
      ? others(pool, revision)
          .flatMap((one) => idsOf(one, as, most))
          .slice(0, most)
      : [];
  }

  /** The pool's instances that are starting. */
  startingIn(poolUid: string): readonly string[] {
    return [...(this.#pools.get(poolUid)?.unclaimed.values() ?? [])].flatMap(({ starting }) =>
      starting.newest(0, starting.size),
    );
  }

  /** Uids of the pools that have instances. */
  poolUids(): readonly string[] {
    return [...this.#pools.keys()];
  }

  claimedIn(poolUid: string, most: number): readonly string[] {
    return this.#pools.get(poolUid)?.claimed.ids(most) ?? [];
  }

  /** When the newest of its claims that live was made; 0: there is none. */
  lastClaimedAt(poolUid: string): number {
    const [newest = ''] = this.#pools.get(poolUid)?.claimed.newest(0, 1) ?? [];
    return this.#placements.get(newest)?.claimedAt ?? 0;
  }

  /** A page of ids, newest first, and how many there are. */
  list(
    filter: LiveFilter,
    offset: number,
    limit: number,
  ): { readonly ids: readonly string[]; readonly total: number } {
    return this.#lists.list(filter, offset, limit);
  }

  /** Counts those of that list that are newer than the entry. */
  newerThan(filter: LiveFilter, entry: OrderedEntry): number {
    return this.#lists.newerThan(filter, entry);
  }

  /** Counts all but those that have completed. */
  counts(): LiveCounts {
    const byStatus = SANDBOX_STATUSES.flatMap((status) => {
      const { total } = this.list({ phase: status }, 0, 0);
      return total > 0 ? [[status, total] as const] : [];
    });
    return { byStatus: new Map(byStatus), byNamespace: new Map(this.#byNamespace) };
  }

  #addToPool(placement: Placement): void {
    if (!isOfPool(placement)) return;
    let pool = this.#pools.get(placement.poolUid);
    if (!pool)
      this.#pools.set(
        placement.poolUid,
        (pool = { unclaimed: new Map(), claimed: new OrderedIndex(), held: new Set() }),
      );
    // also where it died meanwhile: whoever holds it will see
    if (placement.status === 'Idle' && pool.held.has(placement.id)) return;
    if (
      (placement.status === 'Starting' || placement.status === 'Idle') &&
      !pool.unclaimed.has(placement.updateRevision)
    ) {
      pool.unclaimed.set(placement.updateRevision, {
        starting: new OrderedIndex(),
        idle: new IdleSet(),
        unavailable: new OrderedIndex(),
      });
    }
    poolIndexOf(pool, placement)?.add(entryOf(placement));
  }

  #removeFromPool(placement: Placement): void {
    if (!isOfPool(placement)) return;
    const pool = this.#pools.get(placement.poolUid);
    if (!pool) return;
    poolIndexOf(pool, placement)?.remove(entryOf(placement));
    const { unclaimed } = pool;
    const own = unclaimed.get(placement.updateRevision);
    // The only one is kept: it is about to be filled again.
    if (own && unclaimed.size > 1 && isBare(own)) unclaimed.delete(placement.updateRevision);
  }

  #dropBare(poolUid: string): void {
    const pool = this.#pools.get(poolUid);
    if (
      pool &&
      pool.claimed.size + pool.held.size === 0 &&
      [...pool.unclaimed.values()].every(isBare)
    )
      this.#pools.delete(poolUid);
  }

  #recount(before: Placement | undefined, next: Placement | undefined): void {
    const [from, to] = [namespaceOf(before), namespaceOf(next)];
    if (from === to) return;
    if (to !== undefined) this.#byNamespace.set(to, (this.#byNamespace.get(to) ?? 0) + 1);
    if (from === undefined) return;
    const left = (this.#byNamespace.get(from) ?? 0) - 1;
    if (left > 0) this.#byNamespace.set(from, left);
    else this.#byNamespace.delete(from);
  }
}

/** The namespace that it counts in; none once it has completed, when history counts it. */
const namespaceOf = (placement: Placement | undefined): string | undefined =>
  placement === undefined || placement.status === 'Completed'
    ? undefined
    : placement.owner.namespace;

const poolIndexOf = (
  { unclaimed, claimed }: PoolIndex,
  placement: Placement,
): Pick<OrderedIndex, 'add' | 'remove'> | IdleSet | undefined => {
  const own = unclaimed.get(placement.updateRevision);
  switch (placement.status) {
    case 'Starting':
      return own?.starting;
    case 'Idle':
      return placement.availableAt === undefined ? own?.unavailable : own?.idle;
    case 'Running':
      return claimed;
    default:
      return undefined;
  }
};

const idsOf = (pool: RevisionIndex, as: Unclaimed, most: number): readonly string[] =>
  as === 'starting' ? pool.starting.newest(0, most) : pool[as].ids(most);

const isBare = ({ starting, idle, unavailable }: RevisionIndex): boolean =>
  starting.size + idle.size + unavailable.size === 0;

const longestIdle = (
  pool: PoolIndex,
  revision: string,
  preferred: readonly number[],
): FoundIdle | undefined => {
  const own = pool.unclaimed.get(revision)?.idle;
  const ofOthers = (): readonly IdleSet[] => others(pool, revision).map(({ idle }) => idle);
  return (own && longestOf([own], preferred)) ?? longestOf(ofOthers(), preferred);
};

const others = ({ unclaimed }: PoolIndex, revision: string): readonly RevisionIndex[] =>
  [...unclaimed].flatMap(([own, pool]) => (own === revision ? [] : [pool]));

const entryOf = (placement: Placement): OrderedEntry => ({
  at: placement.claimedAt ?? placement.availableAt ?? placement.createdAt,
  id: placement.id,
});

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
