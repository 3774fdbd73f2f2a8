import type { ConsoleSession } from '../../model/console-session.ts';
import type {
  ApprovalRecord,
  ApprovalScope,
  ApprovalStatus,
} from '../../model/approvals/approval.ts';
import type { Caller } from '../../model/tenant.ts';
import type { Page, PageRequest } from '../../actors/views.ts';

export type ApprovalViewer = Caller | ConsoleSession;

export interface ApprovalDecision {
  readonly decision: 'approve' | 'deny';
  readonly scope: ApprovalScope;
  readonly reason?: string;
}

export interface ApprovalOperations {
  /** The viewer's own, newest first; admins and sessions see all. */
  readonly listApprovals: (
    viewer: ApprovalViewer,
    status: ApprovalStatus | undefined,
    page: PageRequest,
  ) => Promise<Page<ApprovalRecord>>;
  /** Refuses with APPROVAL_NOT_FOUND if the approval is missing or belongs to another user. */
  readonly getApproval: (viewer: ApprovalViewer, id: string) => Promise<ApprovalRecord>;
  /**
   * Byte for byte. Undefined if the approval is over, lacked content, or the session may not
   * decide: the content may hold secrets.
   */
  readonly approvalContent: (session: ConsoleSession, id: string) => Promise<Buffer | undefined>;
  /** Durable when it resolves. Refuses with ALREADY_DECIDED if the approval is decided or over. */
  readonly decideApproval: (
    session: ConsoleSession,
    id: string,
    decision: ApprovalDecision,
  ) => Promise<ApprovalRecord>;
}
