import {
  RecordExists,
  type RecordChange,
  type Records,
} from '../../../src/contracts/record-store.ts';
import { RecordConflict } from '../../../src/contracts/sandbox-driver.ts';
import type { ApprovalRecord } from '../../../src/model/approvals/approval.ts';
import { unavailable } from '../../../src/model/refusals.ts';
import { Followers } from './memory-records.ts';

/** May be shared, and may be unavailable. */
export class MemoryApprovals implements Records<ApprovalRecord> {
  readonly records = new Map<string, ApprovalRecord>();
  away = false;
  /** Called after each write; may throw OutcomeUnknown. */
  written: (record: ApprovalRecord) => void = () => undefined;
  readonly #followers = new Followers<ApprovalRecord>();
  #revision = 0;

  async list(): Promise<readonly ApprovalRecord[]> {
    this.#reach();
    return [...this.records.values()];
  }

  async get(key: string): Promise<ApprovalRecord | undefined> {
    this.#reach();
    return this.records.get(key.slice(key.indexOf('/') + 1));
  }

  async caughtUp(): Promise<void> {
    this.#reach();
  }

  async watch(report: (change: RecordChange<ApprovalRecord>) => void): Promise<void> {
    this.#followers.add(report, this.records.values());
  }

  async create(draft: Omit<ApprovalRecord, 'revision'>): Promise<ApprovalRecord> {
    this.#reach();
    if (this.records.has(draft.id)) throw new RecordExists();
    return this.#put(draft);
  }

  async update(record: ApprovalRecord): Promise<ApprovalRecord> {
    this.#reach();
    this.#require(record);
    return this.#put(record);
  }

  async remove(record: ApprovalRecord): Promise<void> {
    this.#reach();
    this.#require(record);
    this.records.delete(record.id);
    this.#followers.tell({ kind: 'gone', record });
  }

  #reach(): void {
    if (this.away) throw unavailable('the store is away');
  }

  #require(record: ApprovalRecord): void {
    if (this.records.get(record.id)?.revision !== record.revision) throw new RecordConflict();
  }

  #put(draft: Omit<ApprovalRecord, 'revision'>): ApprovalRecord {
    const record = { ...draft, revision: String((this.#revision += 1)) };
    this.records.set(record.id, record);
    this.#followers.tell({ kind: 'put', record });
    this.written(record);
    return record;
  }
}
