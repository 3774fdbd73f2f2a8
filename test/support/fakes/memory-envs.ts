import { EnvMirror } from '../../../src/actors/runtime/record-mirror.ts';
import type { Clock } from '../../../src/contracts/clock.ts';
import {
  type RecordChange,
  type Records,
  RecordExists,
} from '../../../src/contracts/record-store.ts';
import { RecordConflict } from '../../../src/contracts/sandbox-driver.ts';
import type { EnvRecord } from '../../../src/model/envs/env.ts';
import { Followers } from './memory-records.ts';
import { quietLog } from './quiet-log.ts';

/** `writes` counts writes. */
export class MemoryEnvs implements Records<EnvRecord> {
  readonly records = new Map<string, EnvRecord>();
  readonly #followers = new Followers<EnvRecord>();
  #revision = 0;
  writes = 0;

  async list(): Promise<readonly EnvRecord[]> {
    return [...this.records.values()];
  }

  async get(key: string): Promise<EnvRecord | undefined> {
    return this.records.get(key);
  }

  async caughtUp(): Promise<void> {}

  async watch(report: (change: RecordChange<EnvRecord>) => void): Promise<void> {
    this.#followers.add(report, this.records.values());
  }

  async create(draft: Omit<EnvRecord, 'revision'>): Promise<EnvRecord> {
    if (this.records.has(keyOf(draft))) throw new RecordExists();
    return this.#put(draft);
  }

  async update(record: EnvRecord): Promise<EnvRecord> {
    this.#require(record);
    return this.#put(record);
  }

  async remove(record: EnvRecord): Promise<void> {
    this.#require(record);
    this.records.delete(keyOf(record));
    this.writes += 1;
    this.#followers.tell({ kind: 'gone', record });
  }

  #require(record: EnvRecord): void {
    if (this.records.get(keyOf(record))?.revision !== record.revision) throw new RecordConflict();
  }

  #put(draft: Omit<EnvRecord, 'revision'>): EnvRecord {
    const record = { ...draft, revision: String((this.#revision += 1)) };
    this.records.set(keyOf(record), record);
    this.writes += 1;
    this.#followers.tell({ kind: 'put', record });
    return record;
  }
}

/** For pools outside envs. */
export const noEnvs = (clock: Clock): EnvMirror =>
  new EnvMirror({ envs: new MemoryEnvs(), clock, log: quietLog });

const keyOf = ({ owner: { namespace }, name }: Omit<EnvRecord, 'revision'>): string =>
  `${namespace}/${name}`;
