import { OrderedIndex, type OrderedEntry } from '../../lib/ordered-index.ts';
import { hasPairs, type TextPairs } from '../../model/claim-terms.ts';
import { tenantKey, type Tenant } from '../../model/tenant.ts';

export interface Described {
  readonly entry: OrderedEntry;
  readonly owner: Tenant;
  readonly pairs: TextPairs;
}

export interface MetadataQuery {
  readonly pairs: TextPairs;
  readonly owner?: Tenant;
  readonly matches?: (id: string) => boolean;
}

/**
 * By each metadata pair, per owner and over all. A query reads only the shortest list of its pairs.
 */
export class MetadataIndex {
  readonly #lists = new Map<string, OrderedIndex>();
  readonly #pairs = new Map<string, TextPairs>();

  add({ entry, owner, pairs }: Described): void {
    this.#pairs.set(entry.id, pairs);
    for (const key of keysOf(owner, pairs)) {
      let list = this.#lists.get(key);
      if (!list) this.#lists.set(key, (list = new OrderedIndex()));
      list.add(entry);
    }
  }

  remove({ entry, owner, pairs }: Described): void {
    this.#pairs.delete(entry.id);
    for (const key of keysOf(owner, pairs)) {
      const list = this.#lists.get(key);
      list?.remove(entry);
      if (list?.size === 0) this.#lists.delete(key);
    }
  }

  /** Ids with all pairs, newest first. */
  list(
    { pairs, owner, matches }: MetadataQuery,
    offset: number,
    limit: number,
  ): { readonly ids: readonly string[]; readonly total: number } {
    const scope = owner ? tenantKey(owner) : '';
    const wanted = Object.entries(pairs);
    let shortest: OrderedIndex | undefined;
    for (const [key, value] of wanted) {
      const list = this.#lists.get(keyOf(scope, key, value));
      if (!list) return { ids: [], total: 0 };
      if (!shortest || list.size < shortest.size) shortest = list;
    }
    if (!shortest) return { ids: [], total: 0 };
    if (wanted.length === 1 && !matches)
      return { ids: shortest.newest(offset, limit), total: shortest.size };
    const found = shortest
      .newest(0, shortest.size)
      .filter((id) => hasPairs(this.#pairs.get(id), pairs) && (matches?.(id) ?? true));
    return { ids: found.slice(offset, offset + limit), total: found.length };
  }
}

const keysOf = (owner: Tenant, pairs: TextPairs): readonly string[] => {
  const scope = tenantKey(owner);
  return Object.entries(pairs).flatMap(([key, value]) => [
    keyOf(scope, key, value),
    keyOf('', key, value),
  ]);
};

/** Neither owners nor metadata contain a NUL. */
const keyOf = (scope: string, key: string, value: string): string => `${scope}\0${key}\0${value}`;
