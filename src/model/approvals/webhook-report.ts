import type { ApprovalNews } from './approval-news.ts';

/** Tells how a replica stands with one webhook, for whoever looks inside. */
export interface WebhookReport {
  /** The origin alone: a path may be as good as a password. */
  readonly address: string;
  /** Messages that are to be sent, or sent again, by this replica. */
  readonly waiting: number;
  /** The last that it gave up to send, the newest first. */
  readonly deadLetters: readonly DeadLetter[];
}

/** Is a message that no receiver took in time. */
export interface DeadLetter {
  readonly id: string;
  readonly event: ApprovalNews['event'];
  readonly approvalId: string;
  /** When it was given up, in ms. */
  readonly at: number;
  readonly attempts: number;
  /** Says what the last attempt met with. */
  readonly problem: string;
}
