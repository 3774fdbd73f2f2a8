import type { ApprovalNews } from './approval-news.ts';

/** A replica's state of one webhook, for debugging. */
export interface WebhookReport {
  /** Only the origin: a path may work like a password. */
  readonly address: string;
  /** Messages that this replica has still to send or resend. */
  readonly waiting: number;
  /** The last undelivered messages, newest first. */
  readonly deadLetters: readonly DeadLetter[];
}

/** A message that its receiver did not accept in time. */
export interface DeadLetter {
  readonly id: string;
  readonly event: ApprovalNews['event'];
  readonly approvalId: string;
  /** Time of the last failure in ms. */
  readonly at: number;
  readonly attempts: number;
  /** The last attempt's failure. */
  readonly problem: string;
}
