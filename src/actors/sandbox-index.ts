import type { Claim, InstanceRecord, SandboxStatus } from '../model/sandbox.ts';
import type { PoolCounts } from '../model/pool.ts';
import { sameTenant, tenantKey, type Tenant } from '../model/tenant.ts';
import { ALL_BUCKETS, IdleShelf } from './idle-shelf.ts';
import { OrderedIndex, type OrderedEntry } from './ordered-index.ts';

/** Where one instance stands in the indexes. */
export interface Placement {
  readonly id: string;
  readonly status: SandboxStatus;
  readonly poolUid: string;
  readonly poolName: string;
  /** The claim's owner, else the pool's. */
  readonly owner: Tenant;
  readonly createdAt: number;
  readonly claimedAt: number | undefined;
  /** Since when it is ready to claim; undefined: it isn't. */
  readonly availableAt: number | undefined;
  /** The key of the request that claimed it, where that had one. */
  readonly mark?: string | undefined;
}

/** Undefined fields match all. Without a phase: claimed ones alone. */
export interface LiveFilter {
  readonly namespace?: string;
  readonly team?: string;
  readonly user?: string;
  readonly poolName?: string;
  readonly phase?: SandboxStatus;
}

interface PoolShelf { readonly starting: OrderedIndex; readonly idle: IdleShelf; readonly unavailable: OrderedIndex; readonly claimed: OrderedIndex; readonly taken: Set<string> }

/**
 * The live instances by pool, tenant and phase, kept up to date by each change: nothing here is ever searched. Lists are
 * by claimedAt, else createdAt.
 */
export class SandboxIndex {
  readonly #placements = new Map<string, Placement>();
  readonly #shelves = new Map<string, PoolShelf>();
  readonly #lists = new Map<string, OrderedIndex>();
  readonly #byMark = new Map<string, string>();
  readonly #listKeys = new Map<string, readonly string[]>();

  get size(): number { return this.#placements.size; }

  /** Sets where an instance stands now; answers where it counted before. */
  place(next: Placement): keyof PoolCounts | undefined {
    const before = this.#placements.get(next.id);
    if (before && samePlace(before, next)) return countedAs(before);
    this.#placements.set(next.id, next);
    if (next.mark !== undefined) this.#byMark.set(next.mark, next.id);
    if (before) this.#unshelve(before);
    this.#shelve(next);
    this.#relist(before, next);
    return before && countedAs(before);
  }

  remove(id: string): keyof PoolCounts | undefined {
    const before = this.#placements.get(id);
    if (!before) return undefined;
    this.#placements.delete(id);
    if (before.mark !== undefined && this.#byMark.get(before.mark) === id) this.#byMark.delete(before.mark);
    this.#unshelve(before);
    this.#relist(before, undefined);
    const shelf = this.#shelves.get(before.poolUid);
    if (shelf) {
      shelf.taken.delete(id);
      if (shelf.starting.size + shelf.idle.size + shelf.unavailable.size + shelf.claimed.size + shelf.taken.size === 0) this.#shelves.delete(before.poolUid);
    }
    return countedAs(before);
  }

  /** The longest idle instance of the pool, of these buckets before others, reserved for the asker until it moves or is put back. */
  takeIdle(poolUid: string, preferred: readonly number[] = ALL_BUCKETS): string | undefined {
    const shelf = this.#shelves.get(poolUid);
    const first = shelf?.idle.first(preferred);
    if (!shelf || !first) return undefined;
    shelf.idle.remove(first);
    shelf.taken.add(first.id);
    return first.id;
  }

  /** One of the pool's that is reserved; undefined where none is. */
  takenOf(poolUid: string): string | undefined {
    for (const id of this.#shelves.get(poolUid)?.taken ?? []) return id;
    return undefined;
  }

  isTaken(id: string): boolean {
    const placement = this.#placements.get(id);
    return placement !== undefined && this.#shelves.get(placement.poolUid)?.taken.has(id) === true;
  }

  putBack(id: string): void {
    const placement = this.#placements.get(id);
    if (placement && this.#shelves.get(placement.poolUid)?.taken.delete(id)) this.#shelve(placement);
  }

  /** Unclaimed and not reserved: starting ones first, newest first; then the unavailable; then the longest idle. */
  dismissable(poolUid: string): readonly string[] {
    const shelf = this.#shelves.get(poolUid);
    return shelf ? [...shelf.starting.newest(0, shelf.starting.size), ...shelf.unavailable.ids(), ...shelf.idle.ids()] : [];
  }

  /** Of the pools that have instances. */
  poolUids(): readonly string[] { return [...this.#shelves.keys()]; }

  claimedIn(poolUid: string): readonly string[] { return this.#shelves.get(poolUid)?.claimed.ids() ?? []; }

  /** What a request with an Idempotency-Key claimed, as long as it lives. */
  claimedUnder(mark: string): string | undefined { return this.#byMark.get(mark); }

  /** A page of ids, newest first, and how many there are. */
  list(filter: LiveFilter, offset: number, limit: number): { readonly ids: readonly string[]; readonly total: number } {
    const index = this.#lists.get(listKey(scopeOf(filter), filter.poolName, filter.phase));
    return { ids: index?.newest(offset, limit) ?? [], total: index?.size ?? 0 };
  }

  /** How many of that list are newer than the entry. */
  newerThan(filter: LiveFilter, entry: OrderedEntry): number {
    return this.#lists.get(listKey(scopeOf(filter), filter.poolName, filter.phase))?.newerThan(entry) ?? 0;
  }

  #shelve(placement: Placement): void {
    let shelf = this.#shelves.get(placement.poolUid);
    if (!shelf) {
      shelf = { starting: new OrderedIndex(), idle: new IdleShelf(), unavailable: new OrderedIndex(), claimed: new OrderedIndex(), taken: new Set() };
      this.#shelves.set(placement.poolUid, shelf);
    }
    if (placement.status === 'Idle' && placement.availableAt !== undefined && shelf.taken.has(placement.id)) return;
    if (placement.status !== 'Idle') shelf.taken.delete(placement.id);
    shelfOf(shelf, placement)?.add(shelfEntry(placement));
  }

  #unshelve(placement: Placement): void {
    const shelf = this.#shelves.get(placement.poolUid);
    if (shelf) shelfOf(shelf, placement)?.remove(shelfEntry(placement));
  }

  #relist(before: Placement | undefined, next: Placement | undefined): void {
    const oldKeys = before ? this.#keysOf(before) : [];
    const newKeys = next ? this.#keysOf(next) : [];
    if (oldKeys === newKeys && before && next && listEntry(before).at === listEntry(next).at) return;
    const moved = before && next && listEntry(before).at !== listEntry(next).at;
    const entry = next && listEntry(next); // one for all its lists: there are sixteen
    for (const key of oldKeys) if (moved || !newKeys.includes(key)) this.#unlist(key, listEntry(before!)); // there are keys, so there is one
    for (const key of newKeys) if (moved || !oldKeys.includes(key)) this.#enlist(key, entry!);
  }

  /** The same array for all that stand on the same lists: making the keys costs more than the lists do. */
  #keysOf(placement: Placement): readonly string[] {
    const { owner, poolName, status, claimedAt } = placement;
    const group = `${tenantKey(owner)} ${poolName} ${status} ${claimedAt === undefined ? '' : 'claimed'}`;
    let keys = this.#listKeys.get(group);
    if (keys) return keys;
    if (this.#listKeys.size >= MOST_GROUPS) this.#listKeys.clear();
    this.#listKeys.set(group, keys = listKeys(placement));
    return keys;
  }

  #enlist(key: string, entry: OrderedEntry): void {
    let list = this.#lists.get(key);
    if (!list) this.#lists.set(key, list = new OrderedIndex());
    list.add(entry);
  }

  #unlist(key: string, entry: OrderedEntry): void {
    const list = this.#lists.get(key);
    list?.remove(entry);
    if (list?.size === 0) this.#lists.delete(key);
  }
}

/** Owners' groups whose list keys are remembered. */
const MOST_GROUPS = 1_000;

const samePlace = (a: Placement, b: Placement): boolean =>
  a.status === b.status && a.availableAt === b.availableAt && a.claimedAt === b.claimedAt && a.createdAt === b.createdAt
  && a.poolUid === b.poolUid && a.poolName === b.poolName && sameTenant(a.owner, b.owner);

/** How a pool counts an instance; undefined once it has completed. */
export const countedAs = (placement: Placement): keyof PoolCounts | undefined => {
  switch (placement.status) {
    case 'Starting': return 'starting';
    case 'Idle': return placement.availableAt === undefined ? 'unavailable' : 'idle';
    case 'Running': return 'running';
    case 'Stopping': return 'stopping';
    case 'Failed': return 'failed';
    case 'Completed': return undefined;
  }
};

export const placementOf = (record: Pick<InstanceRecord, 'id' | 'poolUid' | 'poolName' | 'poolOwner' | 'createdAt'> & { readonly claim?: Claim },
  now: { readonly status: SandboxStatus; readonly availableAt: number | undefined }): Placement => ({
  id: record.id,
  status: now.status,
  poolUid: record.poolUid,
  poolName: record.poolName,
  owner: record.claim?.owner ?? record.poolOwner,
  createdAt: record.createdAt,
  claimedAt: record.claim?.claimedAt,
  mark: record.claim?.mark?.key,
  availableAt: now.availableAt,
});

const shelfOf = (shelf: PoolShelf, placement: Placement): Pick<OrderedIndex, 'add' | 'remove'> | IdleShelf | undefined => {
  switch (placement.status) {
    case 'Starting': return shelf.starting;
    case 'Idle': return placement.availableAt === undefined ? shelf.unavailable : shelf.idle;
    case 'Running': return shelf.claimed;
    default: return undefined;
  }
};

const shelfEntry = (placement: Placement): OrderedEntry =>
  ({ at: placement.claimedAt ?? placement.availableAt ?? placement.createdAt, id: placement.id });

const listEntry = (placement: Placement): OrderedEntry => ({ at: placement.claimedAt ?? placement.createdAt, id: placement.id });

const listKey = (scope: string, poolName = '', phase = ''): string => `${scope} ${poolName} ${phase}`;

/** One scope for each combination of an owner's three names that can be asked for. */
const scopeOf = ({ namespace = '', team = '', user = '' }: LiveFilter): string => `${namespace}/${team}/${user}`;

const listKeys = (placement: Placement): readonly string[] => {
  if (placement.status === 'Completed') return [];
  const { namespace, team, user } = placement.owner;
  const keys: string[] = [];
  for (const scope of [tenantKey(placement.owner), '//', `${namespace}//`, `/${team}/`, `//${user}`, `/${team}/${user}`, `${namespace}/${team}/`, `${namespace}//${user}`]) {
    keys.push(listKey(scope, '', placement.status), listKey(scope, placement.poolName, placement.status));
    if (placement.claimedAt !== undefined) keys.push(listKey(scope), listKey(scope, placement.poolName));
  }
  return keys;
};
