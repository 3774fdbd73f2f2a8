import type { ClaimChange } from '../../model/claim-change.ts';
import type { InstanceId, Revision } from '../../model/identifiers.ts';
import type { Claim, End, InstanceRecord } from '../../model/sandbox.ts';
import type { InstanceDefinition } from '../../model/templates/template.ts';

/**
 * The instance table: the durable half of the embedded driver. Each call is one conditional
 * statement, durable when it resolves; revisions move with every write. Rejects with RecordConflict
 * where nothing was written because the record moved or is gone, with OutcomeUnknown where the
 * commit failed.
 */
export interface InstanceRecords {
  all(): Promise<readonly StoredInstance[]>;
  read(id: InstanceId): Promise<StoredInstance | undefined>;
  /** Born `idle`. Rejects with RecordConflict where the id exists. */
  launchOrder(
    record: Omit<InstanceRecord, 'revision' | 'state' | 'claim' | 'end'>,
    definition: InstanceDefinition,
  ): Promise<InstanceRecord>;
  /** idle → claimed, if at the revision of `seen`. */
  readonly claim: (seen: InstanceRecord, claim: Claim) => Promise<InstanceRecord>;
  amend(id: InstanceId, change: ClaimChange, seen: Revision): Promise<InstanceRecord>;
  /** Moves the revision, if idle and at `seen`. */
  bump(id: InstanceId, seen: Revision): Promise<InstanceRecord>;
  /** Deletes it if idle and at `seen`. */
  retire(id: InstanceId, seen: Revision): Promise<void>;
  /**
   * claimed → ending, whatever the revision; the first end noted stands. Answers undefined for an
   * unknown id.
   */
  release(id: InstanceId, end: End): Promise<InstanceRecord | undefined>;
  forget(id: InstanceId): Promise<void>;
}

export interface StoredInstance {
  readonly record: InstanceRecord;
  readonly definition: InstanceDefinition;
}
