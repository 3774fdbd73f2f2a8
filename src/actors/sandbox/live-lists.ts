import { OrderedIndex, type OrderedEntry } from '../../lib/ordered-index.ts';
import type { TextPairs } from '../../model/claim-terms.ts';
import type { SandboxStatus } from '../../model/sandbox.ts';
import { tenantKey } from '../../model/tenant.ts';
import { MetadataIndex, type Described } from './metadata-index.ts';
import type { Placement } from './sandbox-snapshot.ts';

/**
 * Undefined fields match all. Without a phase: claimed ones alone. `poolUid` counts in place of
 * `poolName`, and together with a namespace alone.
 */
export interface LiveFilter {
  readonly namespace?: string;
  readonly team?: string;
  readonly user?: string;
  readonly poolName?: string;
  readonly poolUid?: string;
  readonly phase?: SandboxStatus;
  /** All of these are in the metadata of its claim. */
  readonly metadata?: TextPairs;
}

/**
 * The lists of live instances that can be asked for, by tenant, pool, phase and metadata, each by
 * claimedAt, else createdAt. Kept up to date by each change.
 */
export class LiveLists {
  readonly #placementOf: (id: string) => Placement | undefined;
  readonly #lists = new Map<string, OrderedIndex>();
  readonly #listKeys = new Map<string, readonly string[]>();
  readonly #byMetadata = new MetadataIndex();

  constructor(placementOf: (id: string) => Placement | undefined) {
    this.#placementOf = placementOf;
  }

  /** It stood there before, and stands here now; undefined: nowhere. */
  move(before: Placement | undefined, next: Placement | undefined): void {
    this.#relist(before, next);
    if (before?.metadata || next?.metadata) this.#redescribe(before, next);
  }

  /** A page of ids, newest first, and how many there are. */
  list(
    filter: LiveFilter,
    offset: number,
    limit: number,
  ): { readonly ids: readonly string[]; readonly total: number } {
    if (filter.metadata) return this.#listDescribed(filter, filter.metadata, { offset, limit });
    const index = this.#lists.get(keyOf(filter));
    return { ids: index?.newest(offset, limit) ?? [], total: index?.size ?? 0 };
  }

  /** Counts those of that list that are newer than the entry. */
  newerThan(filter: LiveFilter, entry: OrderedEntry): number {
    return this.#lists.get(keyOf(filter))?.newerThan(entry) ?? 0;
  }

  /** Those of an owner are found by its own lists; others among all that have the pairs. */
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

  #relist(before: Placement | undefined, next: Placement | undefined): void {
    const oldKeys = before ? this.#keysOf(before) : [];
    const newKeys = next ? this.#keysOf(next) : [];
    if (oldKeys === newKeys && before && next && listEntry(before).at === listEntry(next).at)
      return;
    const moved = before && next && listEntry(before).at !== listEntry(next).at;
    const entry = next && listEntry(next); // one for all its lists: there are forty at most
    for (const key of oldKeys)
      // there are keys, so there is one
      if (moved || !newKeys.includes(key)) this.#unlist(key, listEntry(before!));
    for (const key of newKeys) if (moved || !oldKeys.includes(key)) this.#enlist(key, entry!);
  }

  /**
   * Gives one array to all that stand on the same lists: making the keys costs more than the lists
   * do.
   */
  #keysOf(placement: Placement): readonly string[] {
    const { owner, poolName, poolUid, status, claimedAt } = placement;
    const group =
      `${tenantKey(owner)} ${poolName} ${poolUid} ${status} ` +
      `${claimedAt === undefined ? '' : 'claimed'}`;
    let keys = this.#listKeys.get(group);
    if (keys) return keys;
    if (this.#listKeys.size >= MOST_GROUPS) this.#listKeys.clear();
    this.#listKeys.set(group, (keys = listKeys(placement)));
    return keys;
  }

  #enlist(key: string, entry: OrderedEntry): void {
    let list = this.#lists.get(key);
    if (!list) this.#lists.set(key, (list = new OrderedIndex()));
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

const listEntry = (placement: Placement): OrderedEntry => ({
  at: placement.claimedAt ?? placement.createdAt,
  id: placement.id,
});

/** `pool`: its name, or `#` and its uid. */
const listKey = (scope: string, pool = '', phase = ''): string => `${scope} ${pool} ${phase}`;

const keyOf = (filter: LiveFilter): string => {
  const { poolName, poolUid, phase } = filter;
  return listKey(scopeOf(filter), poolUid === undefined ? poolName : `#${poolUid}`, phase);
};

/** One scope for each combination of an owner's three names that can be asked for. */
const scopeOf = ({ namespace = '', team = '', user = '' }: LiveFilter): string =>
  `${namespace}/${team}/${user}`;

const listKeys = (placement: Placement): readonly string[] => {
  if (placement.status === 'Completed') return [];
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

/** As the index of metadata has it; nothing once it has completed, like its lists. */
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
