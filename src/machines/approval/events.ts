import type { ApprovalRecord } from '../../model/approvals/approval.ts';

export type ApprovalEvent =
  | { readonly type: 'RECORD'; readonly record: ApprovalRecord; readonly now: number }
  | { readonly type: 'LEAD'; readonly now: number }
  | { readonly type: 'FOLLOW' }
  | { readonly type: 'DEADLINE'; readonly now: number };

/** Answered by a RECORD. Repeated if nothing answers. */
export type ApprovalIntent =
  /** Nobody decided on it, or used it, in time. */
  | { readonly type: 'expire' }
  /** Its user never reported the outcome, so it is not used again. */
  | { readonly type: 'settle' };

export interface ApprovalContext {
  readonly record: ApprovalRecord;
  readonly grantMs: number;
  readonly leads: boolean;
  /** Time of the last request; undefined before the first. */
  readonly askedAt: number | undefined;
  readonly deadline: number | undefined;
}

export interface ApprovalInput {
  readonly record: ApprovalRecord;
  readonly grantMs: number;
}
