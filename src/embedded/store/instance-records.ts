import type { ClaimChange } from '../../model/claim-change.ts';
import type { InstanceId, Revision } from '../../model/identifiers.ts';
import type { Claim, End, InstanceRecord } from '../../model/sandbox.ts';
import type { InstanceDefinition } from '../../model/templates/template.ts';

/**
 * The instance table: the durable half of the embedded driver. Each call is one conditional
 * statement, durable when it resolves; every write changes the revision. Rejects with
 * RecordConflict if nothing was written because the record moved or is gone. Rejects with
 * OutcomeUnknown if the commit failed.
 */
export interface InstanceRecords {
  all(): Promise<readonly StoredInstance[]>;
  read(id: InstanceId): Promise<StoredInstance | undefined>;
  /** Inserts an `idle` record. Rejects with RecordConflict if the id exists. */
  launchOrder(
    record: Omit<InstanceRecord, 'revision' | 'state' | 'claim' | 'end'>,
    definition: InstanceDefinition,
  ): Promise<InstanceRecord>;
  /** idle → claimed, if the revision is still that of `seen`. */
  readonly claim: (seen: InstanceRecord, claim: Claim) => Promise<InstanceRecord>;
  amend(id: InstanceId, change: ClaimChange, seen: Revision): Promise<InstanceRecord>;
  /** Changes the revision, if the record is idle and at `seen`. */
  bump(id: InstanceId, seen: Revision): Promise<InstanceRecord>;
  /** Deletes the record if it is idle and at `seen`. */
  retire(id: InstanceId, seen: Revision): Promise<void>;
  /**
   * claimed → ending, at any revision; the first stored end stays. Returns undefined for an unknown
   * id.
   */
  release(id: InstanceId, end: End): Promise<InstanceRecord | undefined>;
  forget(id: InstanceId): Promise<void>;
}

export interface StoredInstance {
  readonly record: InstanceRecord;
  readonly definition: InstanceDefinition;
}
