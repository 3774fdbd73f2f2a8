import type { AuditSink } from '../../contracts/audit.ts';
import { refusalOf, statusOf } from '../../http/router/error-table.ts';
import { ClientGone } from '../../http/router/request-body.ts';
import { approvalDenied, heldOneByOne } from '../../model/approvals/approval-refusals.ts';
import { ruleFor } from '../../model/approvals/policy.ts';
import { Refusal } from '../../model/refusals.ts';
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

const PROCESS = '{processId}';

/** The client did not wait for its answer. */
const CLIENT_GONE = 499;

export type ServedOperation = keyof typeof STANDS_FOR;

export interface ConductDeps {
  readonly gate: Pick<ApprovalGate, 'rulesFor'>;
  readonly audit: Pick<AuditSink, 'note' | 'count'> | undefined;
}

/** Says what a call comes to. */
export interface Conducted {
  readonly sandbox: AddressedSandbox;
  readonly operation: ServedOperation;
  /** Says which process it is about, once that is known. */
  readonly processId?: string | undefined;
}

interface Permitted extends Omit<Conducted, 'sandbox'> {
  readonly sandbox: Pick<AddressedSandbox, 'caller'> & { readonly sandboxId: string };
}

/** Holds calls to the policy of the requests that they stand for, and takes them down as those. */
export class Conduct {
  readonly #deps: ConductDeps;

  constructor(deps: ConductDeps) {
    this.#deps = deps;
  }

  /**
   * Whether it takes the id of a process to say what a rule holds: such a call is permitted once
   * that is known.
   */
  isOfProcess(operation: ServedOperation): boolean {
    return STANDS_FOR[operation][1].includes(PROCESS);
  }

  /**
   * Refuses what a rule holds: an SDK has no way to wait for an approval, so nobody is asked for
   * one.
   */
  permit({ sandbox: { caller, sandboxId }, operation, processId = '' }: Permitted): void {
    const [method, end] = STANDS_FOR[operation];
    const rules = this.#deps.gate.rulesFor(operation, method);
    if (rules.length === 0) return;
    const { namespace, role, team, gated } = caller;
    const ofIt = end.replace(PROCESS, () => encodeURIComponent(processId));
    const rule = ruleFor(rules, {
      operation,
      method,
      path: `/sandboxes/${encodeURIComponent(sandboxId)}/${ofIt}`,
      namespace,
      role,
      team,
      gated: gated === true,
    });
    if (rule?.verdict === 'deny') throw approvalDenied(undefined);
    if (rule?.verdict === 'require') throw heldOneByOne(operation);
  }

  /**
   * Takes down a call that changes something, or that a rule holds, and counts what an admin reads;
   * `failure`: what it was answered with.
   */
  note({ sandbox, operation, processId }: Conducted, failure?: unknown): void {
    const { caller, requestId, sandboxId } = sandbox;
    const params = { sandboxId, ...(processId === undefined ? {} : { processId }) };
    if (STANDS_FOR[operation][0] === 'GET' && !isHeld(failure)) {
      if (caller.role === 'admin')
        this.#deps.audit?.count({ kind: 'read', caller, operation, params });
      return;
    }
    const refusal = failure === undefined ? undefined : refusalOf(failure);
    const broken = failure instanceof ClientGone ? CLIENT_GONE : 500;
    const failed = refusal ? statusOf(refusal.code) : broken;
    this.#deps.audit?.note({
      requestId,
      caller,
      operation,
      params,
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
      this.permit({ sandbox, operation });
      const done = await work();
      this.note({ sandbox, operation });
      return done;
    } catch (error) {
      this.note({ sandbox, operation }, error);
      throw error;
    }
  }
}

const isHeld = (failure: unknown): boolean =>
  failure instanceof Refusal && failure.code === 'APPROVAL_DENIED';
