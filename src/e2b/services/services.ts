import type { IncomingMessage, ServerResponse } from 'node:http';
import { featureDisabled } from '../../model/refusals.ts';
import type { AuditSink } from '../../contracts/audit.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import type { ApprovalGate } from '../../operations/approvals/approval-gate.ts';
import type { Operations } from '../../operations/operations.ts';
import type { AddressedSandbox } from '../traffic/addressed-sandbox.ts';

/** The version of E2B's services that these come to: by it clients know what they may ask for. */
export const ENVD_VERSION = '0.5.6';

export interface ServicesDeps {
  readonly operations: Operations;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly gate: Pick<ApprovalGate, 'rulesFor'>;
  /** Absent: nobody takes down what is written. */
  readonly audit: Pick<AuditSink, 'note' | 'count'> | undefined;
}

/**
 * Serves what a sandbox is asked for at the port of its services: processes and files. Rejects,
 * before the head is sent, with what whoever calls is to answer.
 */
export type SandboxServices = (
  request: IncomingMessage,
  response: ServerResponse,
  sandbox: AddressedSandbox,
) => Promise<void>;

/** Makes the services of all sandboxes. */
export const sandboxServices =
  (_deps: ServicesDeps): SandboxServices =>
  async () => {
    throw featureDisabled('compatibleApi', 'such service in sandboxes');
  };
