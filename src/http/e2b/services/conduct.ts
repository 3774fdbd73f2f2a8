import type { AuditSink } from '../../../contracts/audit.ts';
import { refusalOf, statusOf } from '../../reply/error-table.ts';
import { ClientGone } from '../../corridor/request-body.ts';
import { HELD_OPERATIONS } from '../../../model/approvals/held-operations.ts';
import { Refusal } from '../../../model/refusals.ts';
import type { Caller } from '../../../model/tenant.ts';
import type { ApprovalGate } from '../../../services/approvals/approval-gate.ts';
import { mayAnyPass, refuseHeld } from '../../../services/approvals/refuse-held.ts';
import type { AddressedSandbox } from '../traffic/addressed-sandbox.ts';

/** Lists the requests of the API that calls of the SDKs, and requests to ports, stand for. */
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

/** Whether rules let a token of the sandbox do anything at all. */
export const isTokenGood = (
  gate: ConductDeps['gate'],
  caller: Caller,
  sandboxId: string,
): boolean => mayAnyPass(gate, caller, { operations: STANDS_FOR, params: { sandboxId } });

const requestOf = (operation: ServedOperation): string => HELD_OPERATIONS[operation] ?? '';

/** The client did not wait for its answer. */
const CLIENT_GONE = 499;

export type ServedOperation = (typeof STANDS_FOR)[number];

export interface ConductDeps {
  readonly gate: Pick<ApprovalGate, 'rulesFor'>;
  readonly audit: Pick<AuditSink, 'note' | 'count'> | undefined;
}

/** A request to a port, or for what another cluster answers. */
export interface AskedPort {
  readonly caller: Caller;
  /** It comes without a key, and may come of any. */
  readonly isGuest: boolean;
  readonly sandboxId: string;
  readonly port: number;
  readonly requestId: string;
}

/** Says what a call comes to. */
export interface Conducted {
  readonly sandbox: Pick<AddressedSandbox, 'caller' | 'requestId'> & { readonly sandboxId: string };
  readonly operation: ServedOperation;
  /** Says which process it is about, once that is known. */
  readonly processId?: string;
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
    return requestOf(operation).includes('{processId}');
  }

  /**
   * Refuses what a rule holds: an SDK has no way to wait for an approval, so nobody is asked for
   * one.
   */
  permit({ sandbox: { caller, sandboxId }, operation, processId }: Permitted): void {
    refuseHeld(this.#deps.gate, caller, {
      operations: [operation],
      params: { sandboxId, ...(processId === undefined ? {} : { processId }) },
    });
  }

  /** Refuses the same of what is not answered here, and takes down that it was refused. */
  permitAsked({ port, isGuest, ...sandbox }: AskedPort, operation: ServedOperation): void {
    const { caller, sandboxId } = sandbox;
    const params = { sandboxId, endpointName: String(port) };
    try {
      refuseHeld(this.#deps.gate, caller, { operations: [operation], params });
      // Whoever has a gated key can leave it out.
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
   * Takes down a call that changes something, or that a rule holds, and counts what an admin reads;
   * `failure`: what it was answered with.
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
