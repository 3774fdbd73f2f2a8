import { approvalDenied, heldOneByOne } from '../../model/approvals/approval-refusals.ts';
import { mayPass, ruleFor, subjectOf } from '../../model/approvals/policy.ts';
import type { Caller } from '../../model/tenant.ts';
import type { ApprovalGate } from './approval-gate.ts';

type Gate = Pick<ApprovalGate, 'rulesFor'>;

export interface StoodFor {
  readonly operations: readonly string[];
  readonly params: Readonly<Record<string, string>>;
}

/**
 * Refuses with APPROVAL_DENIED if a rule denies or gates one of the requests: a connection can't
 * wait.
 */
export const refuseHeld = (gate: Gate, caller: Caller, { operations, params }: StoodFor): void => {
  for (const operation of operations) {
    const subject = subjectOf(operation, params, caller);
    const rule = ruleFor(gate.rulesFor(operation, subject.method), subject);
    if (rule?.verdict === 'deny') throw approvalDenied(undefined);
    if (rule?.verdict === 'require') throw heldOneByOne(operation);
  }
};

export const mayAnyPass = (gate: Gate, caller: Caller, { operations, params }: StoodFor): boolean =>
  operations.some((operation) => {
    const subject = subjectOf(operation, params, caller);
    return mayPass(gate.rulesFor(operation, subject.method), subject);
  });
