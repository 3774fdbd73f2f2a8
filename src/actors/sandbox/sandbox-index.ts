import { SANDBOX_STATUSES, type SandboxStatus } from '../../model/sandbox.ts';
import { ClaimMarks, LiveLists, type LiveFilter } from './live-lists.ts';
import { isOfPool, samePlace, type Placement } from './sandbox-snapshot.ts';
import { OrderedIndex, type OrderedEntry } from '../../lib/ordered-index.ts';

export interface LiveCounts {
  readonly byStatus: ReadonlyMap<SandboxStatus, number>;
  readonly byNamespace: ReadonlyMap<string, number>;
}

/** In the order in which a pool dismisses them. */
export const UNCLAIMED = ['starting', 'unavailable', 'idle'] as const;
export type Unclaimed = (typeof UNCLAIMED)[number];

interface RevisionIndex {
  readonly starting: OrderedIndex;
  readonly idle: IdleSet;
  readonly unavailable: OrderedIndex;
}

interface PoolIndex {
  readonly unclaimed: Map<string, RevisionIndex>;
  readonly claimed: OrderedIndex;
  readonly held: Set<string>;
}

/**
 * Each change updates the index, so that no query scans all instances; a search by metadata scans
 * those with its rarest pair.
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
   * Longest idle first. Prefers this revision, then these buckets. The caller holds the instance
   * until it releases it, even if the instance changes state.
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

  nextIdle(
    poolUid: string,
    revision: string,
    preferred: readonly number[] = ALL_BUCKETS,
  ): string | undefined {
    const pool = this.#pools.get(poolUid);
    return pool && longestIdle(pool, revision, preferred)?.entry.id;
  }

  idleIn(poolUid: string): number {
    let count = 0;
    for (const { idle } of this.#pools.get(poolUid)?.unclaimed.values() ?? []) count += idle.size;
    return count;
  }

  heldOf(poolUid: string): string | undefined {
    return this.heldIn(poolUid).next().value;
  }

  *heldIn(poolUid: string): Generator<string, undefined, undefined> {
    for (const id of this.#pools.get(poolUid)?.held ?? []) if (this.#placements.has(id)) yield id;
  }

  isHeld(id: string): boolean {
    const placement = this.#placements.get(id);
    return placement !== undefined && this.#pools.get(placement.poolUid)?.held.has(id) === true;
  }

  /** Returns true if it is unclaimed, and so available again. */
  release(poolUid: string, id: string): boolean {
    if (!this.#pools.get(poolUid)?.held.delete(id)) return false;
    const placement = this.#placements.get(id);
    if (placement?.status === 'Idle') this.#addToPool(placement);
    this.#dropBare(poolUid);
    return placement?.status === 'Idle';
  }

  /**
   * Unclaimed ones that nobody holds: starting (newest first), then unavailable, then idle (longest
   * first). Within each kind, other revisions come before this one.
   */
  dismissable(poolUid: string, revision: string, most: number): readonly string[] {
    const pool = this.#pools.get(poolUid);
    if (!pool) return [];
    const current = pool.unclaimed.get(revision);
    const pools = [...others(pool, revision), ...(current ? [current] : [])];
    return UNCLAIMED.flatMap((as) => pools.flatMap((one) => idsOf(one, as, most))).slice(0, most);
  }

  /** In the order of `dismissable`. */
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

  /** Undefined unless one is unready since `moment` or earlier. */
  longestUnready(poolUid: string, moment: number): string | undefined {
    const unavailable = [...(this.#pools.get(poolUid)?.unclaimed.values() ?? [])].flatMap(
      ({ unavailable: all }) => all.ids(all.size),
    );
    const unready = unavailable
      .flatMap((id) => this.#placements.get(id) ?? [])
      .filter(({ unreadyAt }) => unreadyAt !== undefined && unreadyAt <= moment);
    return unready.sort((a, b) => (a.unreadyAt ?? 0) - (b.unreadyAt ?? 0))[0]?.id;
  }

  /** In the order of `dismissable`. */
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

  startingIn(poolUid: string): readonly string[] {
    return [...(this.#pools.get(poolUid)?.unclaimed.values() ?? [])].flatMap(({ starting }) =>
      starting.newest(0, starting.size),
    );
  }

  poolUids(): readonly string[] {
    return [...this.#pools.keys()];
  }

  claimedIn(poolUid: string, most: number): readonly string[] {
    return this.#pools.get(poolUid)?.claimed.ids(most) ?? [];
  }

  lastClaimedAt(poolUid: string): number {
    const [newest = ''] = this.#pools.get(poolUid)?.claimed.newest(0, 1) ?? [];
    return this.#placements.get(newest)?.claimedAt ?? 0;
  }

  /** Newest first. */
  list(
    filter: LiveFilter,
    offset: number,
    limit: number,
  ): { readonly ids: readonly string[]; readonly total: number } {
    return this.#lists.list(filter, offset, limit);
  }

  newerThan(filter: LiveFilter, entry: OrderedEntry): number {
    return this.#lists.newerThan(filter, entry);
  }

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
    // A held instance stays out even if it died: its holder will notice.
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
    // Keeps the only revision, because the next instance refills it.
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

/** Undefined after completion, when history counts it. */
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

/** Live replicas divide the buckets among themselves, so that two seldom try the same instance. */
const BUCKETS = 64;

export const bucketOf = (id: string): number => {
  let hash = 0;
  for (let i = 0; i < id.length; i++) hash = (Math.imul(hash, 31) + id.charCodeAt(i)) >>> 0;
  return hash % BUCKETS;
};

/** Each bucket sorts by idle time, longest first. */
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

  first(preferred: readonly number[]): OrderedEntry | undefined {
    return this.#size === 0 ? undefined : (this.#firstOf(preferred) ?? this.#firstOf(ALL_BUCKETS));
  }

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

interface FoundIdle {
  readonly among: IdleSet;
  readonly entry: OrderedEntry;
}

const longestOf = (
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
