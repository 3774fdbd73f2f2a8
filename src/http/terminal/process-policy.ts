import { approvalDenied, heldOneByOne } from '../../model/approvals/approval-refusals.ts';
import { ruleFor } from '../../model/approvals/policy.ts';
import type { Caller } from '../../model/tenant.ts';
import type { ApprovalGate } from '../../operations/approvals/approval-gate.ts';
import type { ProcessAsk } from './process-request.ts';

/** Lists the requests that the messages of a process's connection stand for. */
const STANDS_FOR = [
  { operation: 'followProcess', method: 'GET', end: 'output' },
  { operation: 'writeToProcess', method: 'POST', end: 'stdin' },
  { operation: 'signalProcess', method: 'POST', end: 'signal' },
  { operation: 'resizeProcess', method: 'POST', end: 'resize' },
] as const;

/**
 * Refuses the connection where a rule holds any of the requests that it stands for: nobody is asked
 * about what goes over it.
 */
export const requireNothingHeld = (
  gate: Pick<ApprovalGate, 'rulesFor'>,
  { namespace, role, team, gated }: Caller,
  { sandboxId, processId }: Pick<ProcessAsk, 'sandboxId' | 'processId'>,
): void => {
  for (const { operation, method, end } of STANDS_FOR) {
    const [sandbox, ofIt] = [sandboxId, processId].map(encodeURIComponent);
    const path = `/sandboxes/${sandbox}/processes/${ofIt}/${end}`;
    const rule = ruleFor(gate.rulesFor(operation, method), {
      ...{ operation, method, path, namespace, role, team },
      gated: gated === true,
    });
    if (rule?.verdict === 'deny') throw approvalDenied(undefined);
    if (rule?.verdict === 'require') throw heldOneByOne(operation);
  }
};
