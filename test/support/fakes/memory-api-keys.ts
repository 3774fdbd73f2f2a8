import { RecordConflict } from '../../../src/contracts/sandbox-driver.ts';
import {
  RecordExists,
  type RecordChange,
  type Records,
} from '../../../src/contracts/record-store.ts';
import type { ApiKeyRecord } from '../../../src/model/api-key.ts';
import { Followers } from './memory-records.ts';

/** `reads` counts calls. */
export class MemoryApiKeys implements Records<ApiKeyRecord> {
  readonly records = new Map<string, ApiKeyRecord>();
  readonly #names = new Set<string>();
  readonly #followers = new Followers<ApiKeyRecord>();
  reads = 0;
  #revision = 0;

  async list(): Promise<readonly ApiKeyRecord[]> {
    this.reads += 1;
    return [...this.records.values()];
  }

  async get(key: string): Promise<ApiKeyRecord | undefined> {
    this.reads += 1;
    return (
      this.records.get(key) ??
      [...this.records.values()].find(
        ({ namespace, shortName }) => `${namespace}/${shortName}` === key,
      )
    );
  }

  async caughtUp(): Promise<void> {}

  async watch(report: (change: RecordChange<ApiKeyRecord>) => void): Promise<void> {
    this.reads += 1;
    this.#followers.add(report, this.records.values());
  }

  async create(draft: Omit<ApiKeyRecord, 'revision'>): Promise<ApiKeyRecord> {
    const name = `${draft.namespace}/${draft.shortName}`;
    if (this.records.has(draft.keyId) || this.#names.has(name)) throw new RecordExists();
    this.#names.add(name);
    const record = { ...draft, revision: this.#next() };
    this.records.set(record.keyId, record);
    this.#followers.tell({ kind: 'put', record });
    return record;
  }

  async update(record: ApiKeyRecord): Promise<ApiKeyRecord> {
    if (this.records.get(record.keyId)?.revision !== record.revision) throw new RecordConflict();
    const next = { ...record, revision: this.#next() };
    this.records.set(record.keyId, next);
    this.#followers.tell({ kind: 'put', record: next });
    return next;
  }

  async remove(record: ApiKeyRecord): Promise<void> {
    if (this.records.get(record.keyId)?.revision !== record.revision) throw new RecordConflict();
    this.records.delete(record.keyId);
    this.#names.delete(`${record.namespace}/${record.shortName}`);
    this.#followers.tell({ kind: 'gone', record });
  }

  /** Grows even if a record is deleted and made again. */
  #next(): string {
    return String((this.#revision += 1));
  }
}
