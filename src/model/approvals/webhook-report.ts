import type { ApprovalNews } from './approval-news.ts';

export interface WebhookReport {
  /** Only the origin: a path may work like a password. */
  readonly address: string;
  readonly waiting: number;
  readonly deadLetters: readonly DeadLetter[];
}

export interface DeadLetter {
  readonly id: string;
  readonly event: ApprovalNews['event'];
  readonly approvalId: string;
  /** In ms. */
  readonly at: number;
  readonly attempts: number;
  readonly problem: string;
}
