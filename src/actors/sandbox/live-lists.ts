import { RecentSet } from '../../lib/recent-set.ts';
import { newestOf, OrderedIndex, type OrderedEntry } from '../../lib/ordered-index.ts';
import type { TextPairs } from '../../model/claim-terms.ts';
import type { SandboxStatus } from '../../model/sandbox.ts';
import { tenantKey } from '../../model/tenant.ts';
import { MetadataIndex, type Described } from './metadata-index.ts';
import type { Placement } from './sandbox-snapshot.ts';

/**
 * Undefined fields match all. Without a phase, only claimed instances match. `poolUid` replaces
 * `poolName`, and works only together with a namespace.
 */
export interface LiveFilter {
  readonly namespace?: string;
  readonly team?: string;
  readonly user?: string;
  readonly poolName?: string;
  readonly poolUid?: string;
  readonly phase?: SandboxStatus;
  readonly metadata?: TextPairs;
}

interface Cell {
  readonly lists: readonly string[];
  readonly instances: OrderedIndex;
}

/**
 * Each instance is in one cell, and each list consists of cells: a move costs the same for any
 * number of lists, and a page merges cells.
 */
export class LiveLists {
  readonly #placementOf: (id: string) => Placement | undefined;
  readonly #cells = new Map<string, Cell>();
  readonly #lists = new Map<string, Set<OrderedIndex>>();
  readonly #byMetadata = new MetadataIndex();

  constructor(placementOf: (id: string) => Placement | undefined) {
    this.#placementOf = placementOf;
  }

  move(before: Placement | undefined, next: Placement | undefined): void {
    if (before) this.#take(before);
    if (next && next.status !== 'Completed') this.#put(next);
    if (before?.metadata || next?.metadata) this.#redescribe(before, next);
  }

  /** Newest first. */
  list(
    filter: LiveFilter,
    offset: number,
    limit: number,
  ): { readonly ids: readonly string[]; readonly total: number } {
    if (filter.metadata) return this.#listDescribed(filter, filter.metadata, { offset, limit });
    const cells = [...(this.#lists.get(keyOf(filter)) ?? [])];
    const total = cells.reduce((sum, { size }) => sum + size, 0);
    const isEmpty = limit === 0 || offset >= total;
    return { ids: isEmpty ? [] : newestOf(cells, offset, limit), total };
  }

  newerThan(filter: LiveFilter, entry: OrderedEntry): number {
    let newer = 0;
    for (const cell of this.#lists.get(keyOf(filter)) ?? []) newer += cell.newerThan(entry);
    return newer;
  }

  /**
   * Searches an owner's lists if the filter names only an owner; otherwise filters all instances
   * with the pairs.
   */
  #listDescribed(
    filter: LiveFilter,
    pairs: TextPairs,
    { offset, limit }: { readonly offset: number; readonly limit: number },
  ): { readonly ids: readonly string[]; readonly total: number } {
    const { namespace, team, user, poolName, poolUid, phase } = filter;
    const owner =
      namespace !== undefined && team !== undefined && user !== undefined
        ? { namespace, team, user }
        : undefined;
    const isOwners = owner && poolName === undefined && poolUid === undefined && !phase;
    const matches = (id: string): boolean => {
      const placement = this.#placementOf(id);
      return placement !== undefined && isIn(filter, placement);
    };
    return this.#byMetadata.list(
      { pairs, owner, matches: isOwners ? undefined : matches },
      offset,
      limit,
    );
  }

  #redescribe(before: Placement | undefined, next: Placement | undefined): void {
    const [from, to] = [before && describedOf(before), next && describedOf(next)];
    if (from) this.#byMetadata.remove(from);
    if (to) this.#byMetadata.add(to);
  }

  #take(placement: Placement): void {
    const name = cellOf(placement);
    const cell = this.#cells.get(name);
    if (!cell?.instances.remove(listEntry(placement)) || cell.instances.size > 0) return;
    this.#cells.delete(name);
    for (const key of cell.lists) {
      const cells = this.#lists.get(key);
      cells?.delete(cell.instances);
      if (cells?.size === 0) this.#lists.delete(key);
    }
  }

  #put(placement: Placement): void {
    const name = cellOf(placement);
    const cell = this.#cells.get(name) ?? this.#newCell(name, placement);
    cell.instances.add(listEntry(placement));
  }

  #newCell(name: string, placement: Placement): Cell {
    const cell = { lists: listKeys(placement), instances: new OrderedIndex() };
    this.#cells.set(name, cell);
    for (const key of cell.lists) {
      const cells = this.#lists.get(key);
      if (cells) cells.add(cell.instances);
      else this.#lists.set(key, new Set([cell.instances]));
    }
    return cell;
  }
}

const cellOf = ({ owner, poolName, poolUid, status, claimedAt }: Placement): string => {
  const as = claimedAt === undefined ? 'unclaimed' : 'claimed';
  return `${tenantKey(owner)} ${poolName} ${poolUid} ${status} ${as}`;
};

const listEntry = (placement: Placement): OrderedEntry => ({
  at: placement.claimedAt ?? placement.createdAt,
  id: placement.id,
});

/** `pool` is a name, or `#` and a uid. */
const listKey = (scope: string, pool = '', phase = ''): string => `${scope} ${pool} ${phase}`;

const keyOf = (filter: LiveFilter): string => {
  const { poolName, poolUid, phase } = filter;
  return listKey(scopeOf(filter), poolUid === undefined ? poolName : `#${poolUid}`, phase);
};

const scopeOf = ({ namespace = '', team = '', user = '' }: LiveFilter): string =>
  `${namespace}/${team}/${user}`;

const listKeys = (placement: Placement): readonly string[] => {
  const { namespace, team, user } = placement.owner;
  const within = [
    tenantKey(placement.owner),
    `${namespace}//`,
    `${namespace}/${team}/`,
    `${namespace}//${user}`,
  ];
  const over = ['//', `/${team}/`, `//${user}`, `/${team}/${user}`];
  const phases = placement.claimedAt === undefined ? [placement.status] : [placement.status, ''];
  const { poolName } = placement;
  const byUid = `#${placement.poolUid}`;
  return phases.flatMap((phase) => [
    ...[...within, ...over].flatMap((scope) => [
      listKey(scope, '', phase),
      listKey(scope, poolName, phase),
    ]),
    ...within.map((scope) => listKey(scope, byUid, phase)),
  ]);
};

const describedOf = (placement: Placement): Described | undefined =>
  placement.metadata && placement.status !== 'Completed'
    ? { entry: listEntry(placement), owner: placement.owner, pairs: placement.metadata }
    : undefined;

const isIn = (
  { namespace, team, user, poolName, poolUid, phase }: LiveFilter,
  placement: Placement,
): boolean =>
  (namespace === undefined || placement.owner.namespace === namespace) &&
  (team === undefined || placement.owner.team === team) &&
  (user === undefined || placement.owner.user === user) &&
  (poolUid !== undefined
    ? placement.poolUid === poolUid
    : poolName === undefined || placement.poolName === poolName) &&
  (phase === undefined || placement.status === phase);

type Marked = Pick<Placement, 'id' | 'mark' | 'isMarkOfManager'>;

const MOST_ENDED = 10_000;

/** By their request's idempotency key or grant. */
export class ClaimMarks {
  readonly #byMark = new Map<string, string>();
  readonly #ended = new RecentSet(MOST_ENDED);

  place(before: Marked | undefined, { id, mark }: Marked): void {
    if (mark !== undefined) this.#byMark.set(mark, id);
    else this.#forget(before);
  }

  end(placement: Marked): void {
    this.#forget(placement);
    const { mark, isMarkOfManager } = placement;
    if (mark !== undefined && !isMarkOfManager) this.#ended.add(mark);
  }

  /** Undefined once it has ended or its claim was undone. */
  find(mark: string): string | undefined {
    return this.#byMark.get(mark);
  }

  hasEnded(mark: string): boolean {
    return this.#ended.has(mark);
  }

  #forget(placement: Marked | undefined): void {
    if (placement?.mark !== undefined && this.#byMark.get(placement.mark) === placement.id)
      this.#byMark.delete(placement.mark);
  }
}
