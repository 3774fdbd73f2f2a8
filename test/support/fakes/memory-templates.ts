import {
  RecordExists,
  type RecordChange,
  type Records,
} from '../../../src/contracts/record-store.ts';
import { RecordConflict } from '../../../src/contracts/sandbox-driver.ts';
import type { TemplateRecord } from '../../../src/model/templates/template.ts';
import { Followers } from './memory-records.ts';

/** `writes` counts changes, `reads` lookups by name. */
export class MemoryTemplates implements Records<TemplateRecord> {
  readonly records = new Map<string, TemplateRecord>();
  readonly #followers = new Followers<TemplateRecord>();
  #revision = 0;
  writes = 0;
  reads = 0;

  /** Takes over the records of `former`, as after a restart. */
  constructor(former?: MemoryTemplates) {
    for (const [name, record] of former?.records ?? []) this.records.set(name, record);
    if (former) this.#revision = former.#revision;
  }

  async list(): Promise<readonly TemplateRecord[]> {
    return [...this.records.values()];
  }

  async get(name: string): Promise<TemplateRecord | undefined> {
    this.reads += 1;
    return this.records.get(name);
  }

  async caughtUp(): Promise<void> {}

  async watch(report: (change: RecordChange<TemplateRecord>) => void): Promise<void> {
    this.#followers.add(report, this.records.values());
  }

  async create(draft: Omit<TemplateRecord, 'revision'>): Promise<TemplateRecord> {
    if (this.records.has(draft.name)) throw new RecordExists();
    return this.#put(draft);
  }

  async update(record: TemplateRecord): Promise<TemplateRecord> {
    if (this.records.get(record.name)?.revision !== record.revision) throw new RecordConflict();
    return this.#put(record);
  }

  async remove(record: TemplateRecord): Promise<void> {
    if (this.records.get(record.name)?.revision !== record.revision) throw new RecordConflict();
    this.records.delete(record.name);
    this.writes += 1;
    this.#followers.tell({ kind: 'gone', record });
  }

  #put(draft: Omit<TemplateRecord, 'revision'>): TemplateRecord {
    this.writes += 1;
    this.#revision += 1;
    const record = { ...draft, revision: String(this.#revision) };
    this.records.set(record.name, record);
    this.#followers.tell({ kind: 'put', record });
    return record;
  }
}
