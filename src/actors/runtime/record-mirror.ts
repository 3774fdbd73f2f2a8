import type { RecordChange, Records } from '../../contracts/record-store.ts';
import { RecentSet } from '../../lib/recent-set.ts';
import { SharedReads, type SharedReadsDeps } from '../../lib/shared-reads.ts';
import type { Revision } from '../../model/identifiers.ts';
import { isNewer } from '../../model/mirror/revision-order.ts';
import { SerializedWriter } from './serialized-writer.ts';
import { mayUse, sameTenant, tenantKey, type Shared, type Tenant } from '../../model/tenant.ts';
import { OrderedIndex } from '../../lib/ordered-index.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { EnvRecord } from '../../model/envs/env.ts';

export interface RecordMirrorDeps<T extends { readonly revision: Revision }> {
  readonly records: Pick<Records<T>, 'get' | 'update' | 'remove' | 'watch' | 'caughtUp'>;
  readonly clock: SharedReadsDeps<T>['clock'];
  readonly keyOf: (record: T) => string;
  /** See RecordStore. */
  readonly storeKeyOf: (record: T) => string;
  /** Removed keys to remember, which never return; 0 if keys are reused. */
  readonly mostRemoved: number;
  /**
   * Whether a record may be recreated under its key; such a record shows only by the store's
   * reports. Absent if none may.
   */
  readonly comesAgain?: (record: T) => boolean;
}

export type MirrorFollower<T> = (change: RecordChange<T>, before: T | undefined) => void;

/** Serializes writes per record. Followers get changes in order. */
export class RecordMirror<T extends { readonly revision: Revision }> {
  readonly #deps: RecordMirrorDeps<T>;
  readonly #byKey = new Map<string, T>();
  readonly #removed: RecentSet;
  readonly #reads: SharedReads<T>;
  readonly #writer: SerializedWriter<T>;
  readonly #followers: MirrorFollower<T>[] = [];

  constructor(deps: RecordMirrorDeps<T>) {
    this.#deps = deps;
    const { records, clock, storeKeyOf } = deps;
    this.#removed = new RecentSet(deps.mostRemoved);
    this.#reads = new SharedReads({ clock, read: (key) => records.get(key) });
    this.#writer = new SerializedWriter({ records, storeKeyOf, current: (key) => this.get(key) });
  }

  async start(): Promise<void> {
    await this.#deps.records.watch((change) => {
      this.learn(change);
    });
  }

  /** In the store's order; reads cause reports too. */
  learn({ kind, record }: RecordChange<T>): void {
    const key = this.#deps.keyOf(record);
    if (kind === 'gone') this.forget(key, record);
    else if (this.get(key)?.revision !== record.revision) this.#put(record);
  }

  /** Resolves when the mirror contains all writes from before this call. */
  async caughtUp(): Promise<void> {
    await this.#deps.records.caughtUp();
  }

  follow(follower: MirrorFollower<T>): void {
    this.#followers.push(follower);
    for (const record of this.#byKey.values()) follower({ kind: 'put', record }, undefined);
  }

  get size(): number {
    return this.#byKey.size;
  }

  get(key: string): T | undefined {
    return this.#byKey.get(key);
  }

  values(): IterableIterator<T> {
    return this.#byKey.values();
  }

  isRemoved(key: string): boolean {
    return this.#removed.has(key);
  }

  /** The mirror's copy is then no older than this call. */
  async refresh(storeKey: string): Promise<void> {
    await this.#deps.records.get(storeKey);
  }

  /** Concurrent callers share one read per 250 ms. */
  async lookUp(storeKey: string): Promise<T | undefined> {
    return await this.#reads.read(storeKey);
  }

  take(record: T): void {
    const known = this.get(this.#deps.keyOf(record));
    // the store has already reported it, and perhaps its removal
    if (!known && this.#comesAgain(record)) return;
    if (!known || isNewer(record.revision, known.revision)) this.#put(record);
  }

  forget(key: string, record = this.get(key)): void {
    if (!record || !this.#comesAgain(record)) this.#removed.add(key);
    const known = this.get(key);
    if (!known || !record) return;
    this.#byKey.delete(key);
    this.#report({ kind: 'gone', record }, known);
  }

  restore(record: T): void {
    this.#removed.delete(this.#deps.keyOf(record));
    this.take(record);
  }

  /** See SerializedWriter. */
  async change(
    key: string,
    change: (record: T) => T | Promise<T>,
    permitted?: () => boolean,
  ): Promise<T | undefined> {
    return await this.#writer.change(key, change, permitted);
  }

  async runExclusive<R>(key: string, write: () => Promise<R>): Promise<R> {
    return await this.#writer.runExclusive(key, write);
  }

  /** Only if `mayGo` still permits it. Rejects with RecordConflict or OutcomeUnknown. */
  async remove(key: string, mayGo: (record: T) => boolean): Promise<void> {
    await this.runExclusive(key, async () => {
      const record = this.get(key);
      if (record && mayGo(record)) await this.#deps.records.remove(record);
    });
  }

  #put(record: T): void {
    const key = this.#deps.keyOf(record);
    if (this.#removed.has(key) && !this.#comesAgain(record)) return;
    const before = this.get(key);
    this.#byKey.set(key, record);
    this.#report({ kind: 'put', record }, before);
  }

  #comesAgain(record: T): boolean {
    return this.#deps.comesAgain?.(record) === true;
  }

  #report(change: RecordChange<T>, before: T | undefined): void {
    for (const follower of this.#followers) follower(change, before);
  }
}

/** Its name is unique in its owner's namespace. */
export interface Owned extends Shared {
  readonly uid: string;
  readonly name: string;
  readonly createdAt: number;
}

export class OwnedIndex {
  readonly #byName = new Map<string, string>();
  readonly #named = new Map<string, number>();
  readonly #byOwner = new Map<string, OrderedIndex>();
  readonly #owners = new Map<string, Tenant>();
  readonly #all = new OrderedIndex();
  /** By namespace. */
  readonly #shared = new Map<string, Map<string, Owned>>();

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

  existsAnywhere(name: string): boolean {
    return this.#named.has(name);
  }

  /** Newest first; of all owners if none is given. */
  list(
    owner: Tenant | undefined,
    offset: number,
    limit: number,
  ): { readonly ids: readonly string[]; readonly total: number } {
    const index = owner ? this.#byOwner.get(tenantKey(owner)) : this.#all;
    return { ids: index?.newest(offset, limit) ?? [], total: index?.size ?? 0 };
  }

  /** Owned or shared, newest first; all if no tenant is given. */
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

export interface EnvMirrorDeps {
  readonly envs: Records<EnvRecord>;
  readonly clock: Clock;
  readonly log: Log;
}

export class EnvMirror extends RecordMirror<EnvRecord> {
  readonly index = new OwnedIndex();
  readonly #log: Log;

  constructor({ envs, clock, log }: EnvMirrorDeps) {
    super({
      records: envs,
      clock,
      keyOf: ({ uid }) => uid,
      storeKeyOf: ({ owner, name }) => `${owner.namespace}/${name}`,
      mostRemoved: 0,
    });
    this.#log = log;
    super.follow(({ kind, record }, before) => {
      if (kind === 'gone') this.index.remove(record);
      else if (before) this.index.share(record);
      else this.index.add(record);
    });
  }

  /** An error of one follower is logged, and the others continue. */
  override follow(follower: MirrorFollower<EnvRecord>): void {
    super.follow((change, before) => {
      try {
        follower(change, before);
      } catch (error) {
        this.#log.error({ entity: 'env', uid: change.record.uid, error }, 'env-change-not-applied');
      }
    });
  }

  named(namespace: string, name: string): EnvRecord | undefined {
    const uid = this.index.uidOf(namespace, name);
    return uid === undefined ? undefined : this.get(uid);
  }
}
