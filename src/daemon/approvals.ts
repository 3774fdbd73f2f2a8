import { ApprovalHost } from '../actors/approval/approval-host.ts';
import type { ActorRuntime } from '../actors/runtime/actor-runtime.ts';
import type { Config } from '../config/config.ts';
import type { Log } from '../contracts/log.ts';
import { heldSubject } from '../http/router/held-subject.ts';
import type { RouterDeps } from '../http/router/router.ts';
import { approvalParts, type ApprovalParts } from '../operations/approvals/approval-parts.ts';
import { expireApproval, settleApproval } from '../operations/approvals/approval-writer.ts';
import type { Operations } from '../operations/operations.ts';
import type { Assembly } from './assembly.ts';

export interface ApprovalsOfDaemon extends ApprovalParts {
  /** Makes what the router holds requests by; undefined where there is no rule. */
  readonly gating: (operations: Operations) => RouterDeps['gating'];
  /** They lead as the supervisor does, beside it. */
  readonly host: ApprovalHost;
  start(): Promise<void>;
  stop(): void;
}

/** The parts of a daemon that see to approvals. */
export const openApprovals = (
  { approvals: settings }: Config,
  {
    parts: { clock, records, pepper },
    log,
    runtime,
    severalDecide,
  }: {
    readonly parts: Pick<Assembly, 'clock' | 'records' | 'pepper'>;
    readonly log: Log;
    readonly runtime: ActorRuntime;
    /** Whether more than one person decides. */
    readonly severalDecide: () => boolean;
  },
): ApprovalsOfDaemon => {
  const { approvals } = records;
  const parts = approvalParts({
    approvals,
    clock,
    log,
    pepper,
    rules: settings.rules,
    terms: {
      pendingMs: settings.pendingFor,
      grantMs: settings.grantFor,
      sessionMs: settings.sessionFor,
    },
    severalDecide,
  });
  const host = new ApprovalHost({
    runtime,
    approvals: parts.mirror,
    grantMs: settings.grantFor,
    kept: settings.kept,
    expire: expireApproval(parts.mirror, () => clock.now()),
    settle: settleApproval(parts.mirror),
  });
  return {
    ...parts,
    host,
    gating: (operations) =>
      settings.rules.length === 0
        ? undefined
        : { gate: parts.gate, subjectOf: heldSubject(operations) },
    start: async () => {
      await parts.mirror.start();
      host.start();
    },
    stop: () => {
      host.actors.stop();
    },
  };
};
