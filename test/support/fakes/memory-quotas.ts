import {
  RecordExists,
  type RecordChange,
  type Records,
} from '../../../src/contracts/record-store.ts';
import { RecordConflict } from '../../../src/contracts/sandbox-driver.ts';
import {
  NO_SIZE_LIMITS,
  type QuotaAmounts,
  type UserQuota,
} from '../../../src/model/pools/quota.ts';
import { tenantKey } from '../../../src/model/tenant.ts';
import { Followers } from './memory-records.ts';

export class MemoryQuotas implements Records<UserQuota> {
  readonly records = new Map<string, UserQuota>();
  readonly #followers = new Followers<UserQuota>();
  #revision = 0;

  async list(): Promise<readonly UserQuota[]> {
    return [...this.records.values()];
  }

  async get(key: string): Promise<UserQuota | undefined> {
    return this.records.get(key);
  }

  async caughtUp(): Promise<void> {}

  async watch(report: (change: RecordChange<UserQuota>) => void): Promise<void> {
    this.#followers.add(report, this.records.values());
  }

  async create(draft: Omit<UserQuota, 'revision'>): Promise<UserQuota> {
    if (this.records.has(tenantKey(draft))) throw new RecordExists();
    return this.#put(draft);
  }

  async update(record: UserQuota): Promise<UserQuota> {
    this.#require(record);
    return this.#put(record);
  }

  async remove(record: UserQuota): Promise<void> {
    this.#require(record);
    this.records.delete(tenantKey(record));
    this.#followers.tell({ kind: 'gone', record });
  }

  #require(record: UserQuota): void {
    if (this.records.get(tenantKey(record))?.revision !== record.revision)
      throw new RecordConflict();
  }

  #put(draft: Omit<UserQuota, 'revision'>): UserQuota {
    const record = { ...draft, revision: String((this.#revision += 1)) };
    this.records.set(tenantKey(record), record);
    this.#followers.tell({ kind: 'put', record });
    return record;
  }
}

export const limitsOf = (
  part: Partial<QuotaAmounts> = {},
): { readonly of: () => QuotaAmounts } => ({
  of: () => ({ sandboxes: 1_000, pools: 50, replicas: 2_000, ...NO_SIZE_LIMITS, ...part }),
});
