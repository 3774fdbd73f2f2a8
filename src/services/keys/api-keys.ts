import { OrderedIndex, type OrderedEntry } from '../../lib/ordered-index.ts';
import { type MirrorFollower, RecordMirror } from '../../actors/runtime/record-mirror.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { Revocations } from '../../contracts/coordination/signals.ts';
import type { Records } from '../../contracts/record-store.ts';
import { OutcomeUnknown, RecordConflict } from '../../contracts/sandbox-driver.ts';
import { isLasting, type ApiKeyRecord } from '../../model/api-key.ts';
import { Refusal, unavailable } from '../../model/refusals.ts';
import { tenantKey, type Role, type Tenant } from '../../model/tenant.ts';
import { KeyEnds } from './key-ends.ts';
import type { PromotedTrust } from './promoted-trust.ts';
import type { Page, PageRequest } from '../../actors/views.ts';

const MAX_KEYS_PER_TENANT = 1_000;
/** About 0.7 KB each in memory. */
const MAX_KEYS = 100_000;
const MOST_LOOKED_UP = 256;
/** A late message may still arrive for them. */
const MOST_REMOVED = 10_000;
const MOST_REMOVALS = 4;
const LOOK_AGAIN_MS = 1_000;

export interface ApiKeyMirrorDeps {
  readonly apiKeys: Records<ApiKeyRecord>;
  readonly clock: Clock;
  readonly revocations: Revocations;
  /** Absent without copies of promoted keys. */
  readonly trust?: Pick<PromotedTrust, 'check' | 'endsAt'>;
}

/**
 * In memory, so that a request needs no read. Expired keys are removed when their owner reaches the
 * limit.
 */
export class ApiKeyMirror {
  readonly #store: Records<ApiKeyRecord>;
  readonly #clock: Clock;
  readonly #revocations: Revocations;
  readonly #trust: ApiKeyMirrorDeps['trust'];
  readonly #ends: KeyEnds;
  readonly #mirror: RecordMirror<ApiKeyRecord>;
  readonly #byName = new Map<string, ApiKeyRecord>();
  readonly #byTenant = new Map<string, Set<ApiKeyRecord>>();
  readonly #lists = new Map<string, OrderedIndex>();

  #lookingUp = 0;
  #looksForRevoked = false;
  #looksAgain = false;

  constructor({ apiKeys, clock, revocations, trust }: ApiKeyMirrorDeps) {
    this.#store = apiKeys;
    this.#mirror = new RecordMirror({
      records: apiKeys,
      clock,
      keyOf: ({ keyId }) => keyId,
      storeKeyOf: ({ keyId }) => keyId,
      mostRemoved: MOST_REMOVED,
      // a copy of a manager's key; PromotedTrust refuses invalid copies
      comesAgain: ({ promotedBy }) => promotedBy !== undefined,
    });
    this.#mirror.follow(({ kind, record }, before) => {
      if (before) this.#unlist(before);
      if (kind === 'put') this.#list(record);
      this.#ends.changed(record.keyId);
    });
    this.#clock = clock;
    this.#revocations = revocations;
    this.#trust = trust;
    this.#ends = new KeyEnds({
      clock,
      find: (keyId) => this.find(keyId),
      endsAt: (record) =>
        record.promotedBy === undefined || !trust
          ? record.expiresAt
          : Math.min(record.expiresAt, trust.endsAt(record)),
    });
  }

  async start(): Promise<void> {
    this.#revocations.subscribeRevocations(
      (keyId) => {
        // the copy may have been created again since
        if (this.find(keyId)?.promotedBy === undefined) this.#mirror.forget(keyId);
        else this.#mirror.refresh(keyId).catch(() => undefined);
      },
      () => {
        void this.#lookForRevoked();
      },
    );
    await this.#mirror.start();
  }

  get size(): number {
    return this.#mirror.size;
  }

  /** In ms until the next expiry among long-lived keys; omits roles without such keys. */
  nextEnds(): ReadonlyMap<Role, number> {
    const now = this.#clock.now();
    const ends = new Map<Role, number>();
    for (const record of this.#mirror.values()) {
      const left = record.expiresAt - now;
      if (left > 0 && left < (ends.get(record.role) ?? Infinity) && isLasting(record))
        ends.set(record.role, left);
    }
    return ends;
  }

  find(keyId: string): ApiKeyRecord | undefined {
    return this.#mirror.get(keyId);
  }

  findByName(namespace: string, shortName: string): ApiKeyRecord | undefined {
    return this.#byName.get(`${namespace}/${shortName}`);
  }

  /** Uncached. */
  stored(): Promise<readonly ApiKeyRecord[]> {
    return this.#store.list();
  }

  /** Uncached. */
  async stands(keyId: string): Promise<boolean> {
    return (await this.#store.get(keyId)) !== undefined;
  }

  /** The tenant's or all, newest first. Expired keys are listed until they are removed. */
  list(tenant: Tenant | undefined, { offset, limit }: PageRequest): Page<ApiKeyRecord> {
    const list = this.#lists.get(tenant ? tenantKey(tenant) : '');
    const items = (list?.newest(offset, limit) ?? []).flatMap((keyId) => this.find(keyId) ?? []);
    return { items, total: list?.size ?? 0, limit, offset };
  }

  /**
   * Invalidates the key at once, even if the outcome is unknown; durable when it resolves. A
   * promoted key is removed after its workers' revocation is durable. Before a copy is removed, its
   * remover makes PromotedTrust refuse it.
   */
  async remove(record: ApiKeyRecord): Promise<void> {
    if (record.promotedBy !== undefined) {
      this.#ends.changed(record.keyId);
      await this.#removeStanding(record);
      return this.#revocations.publishRevocation(record.keyId);
    }
    const isPromoted = record.global === true;
    if (!isPromoted) this.#mirror.forget(record.keyId);
    try {
      await this.#removeStanding(record);
    } catch (error) {
      if (error instanceof OutcomeUnknown) this.#mirror.forget(record.keyId);
      else if (!isPromoted) this.#mirror.restore(record);
      throw error;
    }
    this.#mirror.forget(record.keyId);
    this.#revocations.publishRevocation(record.keyId);
  }

  async #removeStanding(record: ApiKeyRecord): Promise<void> {
    for (let standing: ApiKeyRecord | undefined = record, attempt = 1; standing; attempt += 1) {
      try {
        return await this.#store.remove(standing);
      } catch (error) {
        if (!(error instanceof RecordConflict)) throw error;
        if (attempt === MOST_REMOVALS)
          throw unavailable('another request is changing this key; try again');
        standing = await this.#store.get(record.keyId);
      }
    }
  }

  /**
   * Called once this replica learns that the key was revoked or expired; at once if it already is.
   * Returns a function that unsubscribes.
   */
  followEnd(keyId: string, ended: () => void): () => void {
    return this.#ends.follow(keyId, ended);
  }

  /** Undefined if invalid. Reads the store if the mirror lacks it. Refuses like `check`. */
  async good(keyId: string): Promise<ApiKeyRecord | undefined> {
    const record = this.find(keyId) ?? (await this.lookUp(keyId));
    if (!record || record.expiresAt <= this.#clock.now()) return undefined;
    this.check(record);
    return record;
  }

  /** Refuses an invalid copy of a promoted key, like PromotedTrust. */
  check(record: ApiKeyRecord): void {
    if (record.promotedBy !== undefined) this.#trust?.check(record);
  }

  async caughtUp(): Promise<void> {
    await this.#mirror.caughtUp();
  }

  follow(follower: MirrorFollower<ApiKeyRecord>): void {
    this.#mirror.follow(follower);
  }

  /**
   * Counts towards no limit. Durable when it resolves. Rejects with RecordExists if its id or name
   * is taken.
   */
  async keepCopy(record: Omit<ApiKeyRecord, 'revision'>): Promise<void> {
    this.#mirror.take(await this.#store.create(record));
  }

  /**
   * Durable and usable when it resolves. Rejects with RecordExists if the name is taken, and with a
   * Refusal at a limit.
   */
  async create(record: Omit<ApiKeyRecord, 'revision'>): Promise<ApiKeyRecord> {
    const owned = this.#byTenant.get(tenantKey(record));
    if (owned && owned.size >= MAX_KEYS_PER_TENANT) await this.#removeExpired(owned);
    if (owned && owned.size >= MAX_KEYS_PER_TENANT) throw tooManyKeys(MAX_KEYS_PER_TENANT);
    if (this.size >= MAX_KEYS) throw tooManyKeys(MAX_KEYS);
    const created = await this.#store.create(record);
    this.#mirror.take(created);
    return created;
  }

  /** In store and mirror. Rejects with RecordConflict if it was changed in the meantime. */
  async renew(record: ApiKeyRecord): Promise<void> {
    this.#mirror.take(await this.#store.update(record));
  }

  /**
   * By its id or its `namespace/shortName`; at most once in 250 ms for all requests with this key.
   */
  async lookUp(key: string): Promise<ApiKeyRecord | undefined> {
    if (this.#mirror.isRemoved(key)) return undefined;
    if (this.#lookingUp >= MOST_LOOKED_UP)
      throw unavailable('too many keys are being checked; try again');
    this.#lookingUp += 1;
    try {
      const record = await this.#mirror.lookUp(key);
      if (!record) return undefined;
      this.#mirror.take(record);
      return this.find(record.keyId);
    } finally {
      this.#lookingUp -= 1;
    }
  }

  #list(record: ApiKeyRecord): void {
    const key = tenantKey(record);
    this.#byName.set(`${record.namespace}/${record.shortName}`, record);
    for (const name of ['', key]) {
      const list = this.#lists.get(name) ?? new OrderedIndex();
      this.#lists.set(name, list);
      list.add(entryOf(record));
    }
    const owned = this.#byTenant.get(key);
    if (owned) owned.add(record);
    else this.#byTenant.set(key, new Set([record]));
  }

  async #removeExpired(owned: Set<ApiKeyRecord>): Promise<void> {
    const now = this.#clock.now();
    for (const record of owned) {
      if (record.expiresAt > now) continue;
      // Removed from the mirror first, so that no other request removes it too. The key has
      // expired, so it is useless even if it stays in the store.
      this.#mirror.forget(record.keyId);
      await this.#removeStanding(record);
    }
  }

  /** In case a revocation was not published. Never rejects. */
  async #lookForRevoked(): Promise<void> {
    if (this.#looksForRevoked) {
      this.#looksAgain = true;
      return;
    }
    this.#looksForRevoked = true;
    this.#looksAgain = false;
    const known = [...this.#mirror.values()];
    try {
      const standing = new Set((await this.#store.list()).map(({ keyId }) => keyId));
      for (const { keyId } of known)
        if (!standing.has(keyId) && !(await this.#store.get(keyId))) this.#mirror.forget(keyId);
    } catch {
      this.#looksAgain = true;
    }
    this.#looksForRevoked = false;
    if (this.#looksAgain)
      this.#clock.at(this.#clock.now() + LOOK_AGAIN_MS, () => {
        void this.#lookForRevoked();
      });
  }

  #unlist(record: ApiKeyRecord): void {
    const key = tenantKey(record);
    this.#byName.delete(`${record.namespace}/${record.shortName}`);
    const owned = this.#byTenant.get(key);
    owned?.delete(record);
    if (owned?.size === 0) this.#byTenant.delete(key);
    for (const name of ['', key]) {
      const list = this.#lists.get(name);
      list?.remove(entryOf(record));
      if (list?.size === 0) this.#lists.delete(name);
    }
  }
}

const entryOf = ({ issuedAt, keyId }: ApiKeyRecord): OrderedEntry => ({ at: issuedAt, id: keyId });

const tooManyKeys = (limit: number): Refusal =>
  new Refusal('CONFLICT', `there are ${limit} API keys, which is the maximum`);
