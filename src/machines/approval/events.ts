import type { ApprovalRecord } from '../../model/approvals/approval.ts';

export type ApprovalEvent =
  | { readonly type: 'RECORD'; readonly record: ApprovalRecord; readonly now: number }
  | { readonly type: 'LEAD'; readonly now: number }
  | { readonly type: 'FOLLOW' }
  | { readonly type: 'DEADLINE'; readonly now: number };

export type ApprovalIntent =
  | { readonly type: 'expire' }
  /** Its user never reported the outcome, so it is not used again. */
  | { readonly type: 'settle' };

export interface ApprovalContext {
  readonly record: ApprovalRecord;
  readonly grantMs: number;
  readonly leads: boolean;
  readonly askedAt: number | undefined;
  readonly deadline: number | undefined;
}

export interface ApprovalInput {
  readonly record: ApprovalRecord;
  readonly grantMs: number;
}
