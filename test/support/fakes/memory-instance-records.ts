import { changedClaim, type ClaimChange } from '../../../src/model/claim-change.ts';
import { OutcomeUnknown, RecordConflict } from '../../../src/contracts/sandbox-driver.ts';
import type {
  InstanceRecords,
  StoredInstance,
} from '../../../src/embedded/store/instance-records.ts';
import type { InstanceId, Revision } from '../../../src/model/identifiers.ts';
import type { End, InstanceRecord } from '../../../src/model/sandbox.ts';
import type { InstanceDefinition } from '../../../src/model/templates/template.ts';

export type WriteFault =
  /** Not written; the caller gets a conflict. */
  | 'conflict'
  /** Written; the caller gets an unknown outcome. */
  | 'unknown-landed'
  /** Not written; the caller gets an unknown outcome. */
  | 'unknown-lost';

/** With the conditions and revisions of the durable one. */
export class MemoryInstanceRecords implements InstanceRecords {
  readonly #stored = new Map<InstanceId, StoredInstance>();
  readonly #faults = new Map<string, WriteFault[]>();
  #revision = 0;

  /** Faults queue up. */
  failNext(
    operation: 'launchOrder' | 'claim' | 'amend' | 'bump' | 'retire' | 'release' | 'forget',
    fault: WriteFault,
  ): void {
    this.#faults.set(operation, [...(this.#faults.get(operation) ?? []), fault]);
  }

  async all(): Promise<readonly StoredInstance[]> {
    return [...this.#stored.values()];
  }

  async read(id: InstanceId): Promise<StoredInstance | undefined> {
    return this.#stored.get(id);
  }

  async launchOrder(
    record: Omit<InstanceRecord, 'revision' | 'state' | 'claim' | 'end'>,
    definition: InstanceDefinition,
  ): Promise<InstanceRecord> {
    return this.#write('launchOrder', () => {
      if (this.#stored.has(record.id)) throw new RecordConflict(`${record.id} exists`);
      return this.#put({ ...record, revision: '', state: 'idle' }, definition);
    });
  }

  readonly claim: InstanceRecords['claim'] = async ({ id, revision: seen }, claim) =>
    this.#write('claim', () => {
      const { record, definition } = this.#at(id, seen, 'idle');
      return this.#put({ ...record, state: 'claimed', claim }, definition);
    });

  async amend(id: InstanceId, change: ClaimChange, seen: Revision): Promise<InstanceRecord> {
    return this.#write('amend', () => {
      const { record, definition } = this.#at(id, seen, 'claimed');
      if (!record.claim) throw new RecordConflict(`${id} has no claim`);
      return this.#put({ ...record, claim: changedClaim(record.claim, change) }, definition);
    });
  }

  async bump(id: InstanceId, seen: Revision): Promise<InstanceRecord> {
    return this.#write('bump', () => {
      const { record, definition } = this.#at(id, seen, 'idle');
      return this.#put(record, definition);
    });
  }

  async retire(id: InstanceId, seen: Revision): Promise<void> {
    this.#write('retire', () => {
      this.#at(id, seen, 'idle');
      this.#stored.delete(id);
    });
  }

  async release(id: InstanceId, end: End): Promise<InstanceRecord | undefined> {
    return this.#write('release', () => {
      const stored = this.#stored.get(id);
      if (!stored || stored.record.state === 'ending') return stored?.record;
      if (stored.record.state === 'idle') throw new RecordConflict(`${id} is idle`);
      return this.#put({ ...stored.record, state: 'ending', end }, stored.definition);
    });
  }

  async forget(id: InstanceId): Promise<void> {
    this.#write('forget', () => this.#stored.delete(id));
  }

  #put(record: InstanceRecord, definition: InstanceDefinition): InstanceRecord {
    const written = { ...record, revision: String(++this.#revision) };
    this.#stored.set(record.id, { record: written, definition });
    return written;
  }

  #at(id: InstanceId, seen: Revision, state: InstanceRecord['state']): StoredInstance {
    const stored = this.#stored.get(id);
    if (!stored || stored.record.revision !== seen || stored.record.state !== state)
      throw new RecordConflict(`${id} moved`);
    return stored;
  }

  #write<T>(operation: string, act: () => T): T {
    const fault = this.#faults.get(operation)?.shift();
    if (fault === 'conflict') throw new RecordConflict(`${operation}: told to conflict`);
    if (fault === 'unknown-lost') throw new OutcomeUnknown(`${operation}: told to be lost`);
    const result = act();
    if (fault === 'unknown-landed') throw new OutcomeUnknown(`${operation}: told to be unknown`);
    return result;
  }
}
