import type { ConsoleSession } from '../../model/console-session.ts';
import type {
  ApprovalRecord,
  ApprovalScope,
  ApprovalStatus,
} from '../../model/approvals/approval.ts';
import type { Caller } from '../../model/tenant.ts';
import type { Page, PageRequest } from '../../actors/views.ts';

/** Who looks: a key, or a person at the console. */
export type ApprovalViewer = Caller | ConsoleSession;

export interface ApprovalDecision {
  readonly decision: 'approve' | 'deny';
  readonly scope: ApprovalScope;
  readonly reason?: string;
}

export interface ApprovalOperations {
  /** One's own, newest first; admins' and sessions' are everybody's. */
  readonly listApprovals: (
    viewer: ApprovalViewer,
    status: ApprovalStatus | undefined,
    page: PageRequest,
  ) => Promise<Page<ApprovalRecord>>;
  /** Refuses with APPROVAL_NOT_FOUND, whether it is another's or none. */
  readonly getApproval: (viewer: ApprovalViewer, id: string) => Promise<ApprovalRecord>;
  /**
   * Returns what was sent with the request, byte for byte; undefined where it is over, or nothing
   * was sent, and for who doesn't decide: it may hold secrets.
   */
  readonly approvalContent: (session: ConsoleSession, id: string) => Promise<Buffer | undefined>;
  /** Durable when it resolves. Refuses with ALREADY_DECIDED once it is decided or over. */
  readonly decideApproval: (
    session: ConsoleSession,
    id: string,
    decision: ApprovalDecision,
  ) => Promise<ApprovalRecord>;
}
