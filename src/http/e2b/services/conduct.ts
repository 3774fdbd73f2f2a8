import type { AuditSink } from '../../../contracts/audit.ts';
import { refusalOf, statusOf } from '../../reply/error-table.ts';
import { ClientGone } from '../../corridor/request-body.ts';
import { HELD_OPERATIONS } from '../../../model/approvals/held-operations.ts';
import { Refusal } from '../../../model/refusals.ts';
import type { Caller } from '../../../model/tenant.ts';
import type { ApprovalGate } from '../../../services/approvals/approval-gate.ts';
import { mayAnyPass, refuseHeld } from '../../../services/approvals/refuse-held.ts';
import type { AddressedSandbox } from '../traffic/addressed-sandbox.ts';

const STANDS_FOR = [
  'startProcess',
  'listProcesses',
  'followProcess',
  'writeToProcess',
  'signalProcess',
  'resizeProcess',
  'readFile',
  'writeFile',
  'removeFile',
  'listFiles',
  'moveFile',
  'makeFolder',
  'watchFiles',
  'execInSandbox',
  'openEndpoint',
] as const;

export const isTokenGood = (
  gate: ConductDeps['gate'],
  caller: Caller,
  sandboxId: string,
): boolean => mayAnyPass(gate, caller, { operations: STANDS_FOR, params: { sandboxId } });

const requestOf = (operation: ServedOperation): string => HELD_OPERATIONS[operation] ?? '';

const CLIENT_GONE = 499;

export type ServedOperation = (typeof STANDS_FOR)[number];

export interface ConductDeps {
  readonly gate: Pick<ApprovalGate, 'rulesFor'>;
  readonly audit: Pick<AuditSink, 'note' | 'count'> | undefined;
}

/** A request to a port or for another cluster. */
export interface AskedPort {
  readonly caller: Caller;
  /** Without a key: anyone may have sent it. */
  readonly isGuest: boolean;
  readonly sandboxId: string;
  readonly port: number;
  readonly requestId: string;
}

export interface Conducted {
  readonly sandbox: Pick<AddressedSandbox, 'caller' | 'requestId'> & { readonly sandboxId: string };
  readonly operation: ServedOperation;
  readonly processId?: string;
}

interface Permitted extends Omit<Conducted, 'sandbox'> {
  readonly sandbox: Pick<AddressedSandbox, 'caller'> & { readonly sandboxId: string };
}

/** Applies approval rules and audit to calls that map to API operations. */
export class Conduct {
  readonly #deps: ConductDeps;

  constructor(deps: ConductDeps) {
    this.#deps = deps;
  }

  /** Such a call is checked once its process is known. */
  isOfProcess(operation: ServedOperation): boolean {
    return requestOf(operation).includes('{processId}');
  }

  /** Requests no approval: an SDK can't wait. */
  permit({ sandbox: { caller, sandboxId }, operation, processId }: Permitted): void {
    refuseHeld(this.#deps.gate, caller, {
      operations: [operation],
      params: { sandboxId, ...(processId === undefined ? {} : { processId }) },
    });
  }

  permitAsked({ port, isGuest, ...sandbox }: AskedPort, operation: ServedOperation): void {
    const { caller, sandboxId } = sandbox;
    const params = { sandboxId, endpointName: String(port) };
    try {
      refuseHeld(this.#deps.gate, caller, { operations: [operation], params });
      // The holder of a gated key could leave the key out.
      if (isGuest)
        refuseHeld(
          this.#deps.gate,
          { ...caller, gated: true },
          { operations: [operation], params },
        );
    } catch (error) {
      this.note({ sandbox, operation }, error);
      throw error;
    }
  }

  /**
   * Audits changes and refusals by rules; only counts an admin's reads. `failure` is the client's
   * error.
   */
  note({ sandbox, operation, processId }: Conducted, failure?: unknown): void {
    const { caller, requestId, sandboxId } = sandbox;
    const params = { sandboxId, ...(processId === undefined ? {} : { processId }) };
    if (requestOf(operation).startsWith('GET ') && !isHeld(failure)) {
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
      errorCode: refusal?.code,
    });
  }

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
