import type { ApprovalRecord } from '../../model/approvals/approval.ts';

export type ApprovalEvent =
  | { readonly type: 'RECORD'; readonly record: ApprovalRecord; readonly now: number }
  | { readonly type: 'LEAD'; readonly now: number }
  | { readonly type: 'FOLLOW' }
  | { readonly type: 'DEADLINE'; readonly now: number };

/** Answered by a RECORD, or by nothing: then it is asked for again. */
export type ApprovalIntent =
  /** Nobody decided or used it in time. */
  | { readonly type: 'expire' }
  /** Who used it never said what came of it: it is not tried again. */
  | { readonly type: 'settle' };

export interface ApprovalContext {
  readonly record: ApprovalRecord;
  readonly grantMs: number;
  readonly leads: boolean;
  /** When something was last asked for; undefined: nothing was. */
  readonly askedAt: number | undefined;
  readonly deadline: number | undefined;
}

export interface ApprovalInput {
  readonly record: ApprovalRecord;
  readonly grantMs: number;
}
