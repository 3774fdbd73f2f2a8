import { tenantKey, type Tenant } from '../model/tenant.ts';
import { OrderedIndex } from './ordered-index.ts';

/** Of pools, of envs. A name is unique in its owner's namespace. */
export interface Owned { readonly uid: string; readonly name: string; readonly owner: Tenant; readonly createdAt: number }

/** Owned records by name and by owner. */
export class OwnedIndex {
  readonly #byName = new Map<string, string>();
  readonly #named = new Map<string, number>();
  readonly #byOwner = new Map<string, OrderedIndex>();
  readonly #owners = new Map<string, Tenant>();
  readonly #all = new OrderedIndex();

  /** Those who have any. */
  get owners(): Iterable<Tenant> { return this.#owners.values(); }

  add(record: Owned): void {
    this.#byName.set(nameKey(record.owner.namespace, record.name), record.uid);
    this.#named.set(record.name, (this.#named.get(record.name) ?? 0) + 1);
    const entry = { at: record.createdAt, id: record.uid };
    this.#all.add(entry);
    const key = tenantKey(record.owner);
    const owned = this.#byOwner.get(key) ?? new OrderedIndex();
    this.#byOwner.set(key, owned);
    this.#owners.set(key, record.owner);
    owned.add(entry);
  }

  remove(record: Owned): void {
    if (!this.#byName.delete(nameKey(record.owner.namespace, record.name))) return;
    const others = (this.#named.get(record.name) ?? 1) - 1;
    if (others > 0) this.#named.set(record.name, others);
    else this.#named.delete(record.name);
    const entry = { at: record.createdAt, id: record.uid };
    this.#all.remove(entry);
    const key = tenantKey(record.owner);
    const owned = this.#byOwner.get(key);
    owned?.remove(entry);
    if (owned?.size !== 0) return;
    this.#byOwner.delete(key);
    this.#owners.delete(key);
  }

  uidOf(namespace: string, name: string): string | undefined { return this.#byName.get(nameKey(namespace, name)); }

  /** Whether any namespace has one of the name. */
  existsAnywhere(name: string): boolean { return this.#named.has(name); }

  /** A page of uids, newest first; all where no owner is given. */
  list(owner: Tenant | undefined, offset: number, limit: number): { readonly ids: readonly string[]; readonly total: number } {
    const index = owner ? this.#byOwner.get(tenantKey(owner)) : this.#all;
    return { ids: index?.newest(offset, limit) ?? [], total: index?.size ?? 0 };
  }
}

const nameKey = (namespace: string, name: string): string => `${namespace}/${name}`;
