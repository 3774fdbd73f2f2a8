import { ApprovalMirror } from '../../actors/approval/approval-mirror.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { Records } from '../../contracts/record-store.ts';
import type { ApprovalTerms } from '../../model/approvals/approval-changes.ts';
import type { ApprovalRecord } from '../../model/approvals/approval.ts';
import type { PolicyRule } from '../../model/approvals/policy.ts';
import { ApprovalGate } from './approval-gate.ts';
import type { ApprovalOperations } from './approval-operations.ts';
import { approvalOperations } from './approvals.ts';
import { SealedContents } from './sealed-contents.ts';

export interface ApprovalPartsDeps {
  readonly approvals: Records<ApprovalRecord>;
  readonly clock: Clock;
  readonly log: Log;
  readonly pepper: Buffer;
  readonly rules: readonly PolicyRule[];
  readonly terms: ApprovalTerms;
  readonly severalDecide: () => boolean;
}

export interface ApprovalParts {
  readonly mirror: ApprovalMirror;
  readonly gate: ApprovalGate;
  readonly operations: ApprovalOperations;
}

export const approvalParts = (deps: ApprovalPartsDeps): ApprovalParts => {
  const mirror = new ApprovalMirror(deps);
  const all = { ...deps, mirror, contents: new SealedContents(deps.pepper) };
  return { mirror, gate: new ApprovalGate(all), operations: approvalOperations(all) };
};
