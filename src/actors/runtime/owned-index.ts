import { mayUse, sameTenant, tenantKey, type Shared, type Tenant } from '../../model/tenant.ts';
import { OrderedIndex } from '../../lib/ordered-index.ts';

/** Has an owner: a pool or an env. A name is unique in its owner's namespace. */
export interface Owned extends Shared {
  readonly uid: string;
  readonly name: string;
  readonly createdAt: number;
}

/** Owned records by name and by owner. */
export class OwnedIndex {
  readonly #byName = new Map<string, string>();
  readonly #named = new Map<string, number>();
  readonly #byOwner = new Map<string, OrderedIndex>();
  readonly #owners = new Map<string, Tenant>();
  readonly #all = new OrderedIndex();
  /** Holds what is shared with a team, by its namespace. */
  readonly #shared = new Map<string, Map<string, Owned>>();

  /** Tenants who own any. */
  get owners(): Iterable<Tenant> {
    return this.#owners.values();
  }

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
    this.share(record);
  }

  /** Notes whether what is known is shared now. */
  share(record: Owned): void {
    const {
      uid,
      owner: { namespace },
    } = record;
    const shared = this.#shared.get(namespace);
    if (record.access === 'team')
      this.#shared.set(namespace, (shared ?? new Map<string, Owned>()).set(uid, record));
    else if (shared?.delete(uid) && shared.size === 0) this.#shared.delete(namespace);
  }

  remove(record: Owned): void {
    if (!this.#byName.delete(nameKey(record.owner.namespace, record.name))) return;
    const { access: _any, ...unshared } = record;
    this.share(unshared);
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

  uidOf(namespace: string, name: string): string | undefined {
    return this.#byName.get(nameKey(namespace, name));
  }

  /** Whether any namespace has one of the name. */
  existsAnywhere(name: string): boolean {
    return this.#named.has(name);
  }

  /** A page of uids, newest first; all where no owner is given. */
  list(
    owner: Tenant | undefined,
    offset: number,
    limit: number,
  ): { readonly ids: readonly string[]; readonly total: number } {
    const index = owner ? this.#byOwner.get(tenantKey(owner)) : this.#all;
    return { ids: index?.newest(offset, limit) ?? [], total: index?.size ?? 0 };
  }

  /**
   * A page of uids that the tenant may use, own and shared ones, newest first; all where no tenant
   * is given.
   */
  listFor(
    tenant: Tenant | undefined,
    offset: number,
    limit: number,
  ): { readonly ids: readonly string[]; readonly total: number } {
    const all = tenant ? [...(this.#shared.get(tenant.namespace)?.values() ?? [])] : [];
    const shared = all.filter(
      (each) => tenant && mayUse(each, tenant) && !sameTenant(each.owner, tenant),
    );
    if (!tenant || shared.length === 0) return this.list(tenant, offset, limit);
    const usable = new OrderedIndex();
    for (const entry of this.#byOwner.get(tenantKey(tenant))?.oldest(Number.POSITIVE_INFINITY) ??
      [])
      usable.add(entry);
    for (const { createdAt, uid } of shared) usable.add({ at: createdAt, id: uid });
    return { ids: usable.newest(offset, limit), total: usable.size };
  }
}

const nameKey = (namespace: string, name: string): string => `${namespace}/${name}`;
