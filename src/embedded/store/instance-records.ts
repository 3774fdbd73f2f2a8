import type { ClaimChange } from '../../model/claim-change.ts';
import type { InstanceId, Revision } from '../../model/identifiers.ts';
import type { Claim, End, InstanceRecord } from '../../model/sandbox.ts';
import type { InstanceDefinition } from '../../model/templates/template.ts';

/**
 * Each call is one conditional statement, durable when it resolves; every write changes the
 * revision. Rejects with RecordConflict if the record moved or is gone, and with OutcomeUnknown if
 * the commit failed.
 */
export interface InstanceRecords {
  all(): Promise<readonly StoredInstance[]>;
  read(id: InstanceId): Promise<StoredInstance | undefined>;
  /** Rejects with RecordConflict if the id exists. */
  launchOrder(
    record: Omit<InstanceRecord, 'revision' | 'state' | 'claim' | 'end'>,
    definition: InstanceDefinition,
  ): Promise<InstanceRecord>;
  /** At the revision of `seen`. */
  readonly claim: (seen: InstanceRecord, claim: Claim) => Promise<InstanceRecord>;
  amend(id: InstanceId, change: ClaimChange, seen: Revision): Promise<InstanceRecord>;
  /** If idle and at `seen`. */
  bump(id: InstanceId, seen: Revision): Promise<InstanceRecord>;
  /** If idle and at `seen`. */
  retire(id: InstanceId, seen: Revision): Promise<void>;
  /** claimed → ending, at any revision; the first end stays. Undefined for an unknown id. */
  release(id: InstanceId, end: End): Promise<InstanceRecord | undefined>;
  forget(id: InstanceId): Promise<void>;
}

export interface StoredInstance {
  readonly record: InstanceRecord;
  readonly definition: InstanceDefinition;
}
