import type { AuditSink } from '../../contracts/audit.ts';
import { refusalOf, statusOf } from '../../http/router/error-table.ts';
import { ClientGone } from '../../http/router/request-body.ts';
import { approvalDenied, heldOneByOne } from '../../model/approvals/approval-refusals.ts';
import { ruleFor } from '../../model/approvals/policy.ts';
import type { ApprovalGate } from '../../operations/approvals/approval-gate.ts';
import type { AddressedSandbox } from '../traffic/addressed-sandbox.ts';

/** Lists the requests of the API that calls of the SDKs stand for, and where they are there. */
const STANDS_FOR = {
  startProcess: ['POST', 'processes'],
  listProcesses: ['GET', 'processes'],
  followProcess: ['GET', 'processes/{processId}/output'],
  writeToProcess: ['POST', 'processes/{processId}/stdin'],
  signalProcess: ['POST', 'processes/{processId}/signal'],
  resizeProcess: ['POST', 'processes/{processId}/resize'],
  readFile: ['GET', 'files'],
  writeFile: ['PUT', 'files'],
  removeFile: ['DELETE', 'files'],
  listFiles: ['GET', 'files/list'],
  moveFile: ['POST', 'files/move'],
  makeFolder: ['POST', 'files/mkdir'],
  watchFiles: ['GET', 'files/watch'],
} as const;

/** The client did not wait for its answer. */
const CLIENT_GONE = 499;

export type ServedOperation = keyof typeof STANDS_FOR;

export interface ConductDeps {
  readonly gate: Pick<ApprovalGate, 'rulesFor'>;
  readonly audit: Pick<AuditSink, 'note'> | undefined;
}

/** Holds calls to the policy of the requests that they stand for, and takes them down as those. */
export class Conduct {
  readonly #deps: ConductDeps;

  constructor(deps: ConductDeps) {
    this.#deps = deps;
  }

  /**
   * Refuses what a rule holds: an SDK has no way to wait for an approval, so nobody is asked for
   * one.
   */
  permit({ caller, sandboxId }: AddressedSandbox, operation: ServedOperation): void {
    const [method, end] = STANDS_FOR[operation];
    const rules = this.#deps.gate.rulesFor(operation, method);
    if (rules.length === 0) return;
    const { namespace, role, team, gated } = caller;
    const rule = ruleFor(rules, {
      operation,
      method,
      path: `/sandboxes/${encodeURIComponent(sandboxId)}/${end}`,
      namespace,
      role,
      team,
      gated: gated === true,
    });
    if (rule?.verdict === 'deny') throw approvalDenied(undefined);
    if (rule?.verdict === 'require') throw heldOneByOne(operation);
  }

  /** Takes down a call that changes something; `failure`: what it was answered with. */
  note(sandbox: AddressedSandbox, operation: ServedOperation, failure?: unknown): void {
    if (STANDS_FOR[operation][0] === 'GET') return;
    const { caller, requestId, sandboxId } = sandbox;
    const refusal = failure === undefined ? undefined : refusalOf(failure);
    const broken = failure instanceof ClientGone ? CLIENT_GONE : 500;
    const failed = refusal ? statusOf(refusal.code) : broken;
    this.#deps.audit?.note({
      requestId,
      caller,
      operation,
      params: { sandboxId },
      status: failure === undefined ? 200 : failed,
      ...(refusal ? { errorCode: refusal.code } : {}),
    });
  }

  /** Does both around work that is over when it resolves. */
  async around<T>(
    sandbox: AddressedSandbox,
    operation: ServedOperation,
    work: () => Promise<T>,
  ): Promise<T> {
    try {
      this.permit(sandbox, operation);
      const done = await work();
      this.note(sandbox, operation);
      return done;
    } catch (error) {
      this.note(sandbox, operation, error);
      throw error;
    }
  }
}
