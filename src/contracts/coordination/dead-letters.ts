import type { DeadLetter } from '../../model/approvals/webhook-report.ts';

export const MAX_DEAD_LETTERS = 100;
export const DEAD_LETTER_MS = 7 * 24 * 60 * 60_000;

export interface KeptDeadLetter extends DeadLetter {
  readonly body: string;
}

/**
 * Durable, and shared by all replicas. `receiver` is a unique name. Rejects with `unavailable` if
 * the store is unreachable.
 */
export interface DeadLetters {
  /**
   * Replaces a letter with the same id. Drops a receiver's oldest letters beyond MAX_DEAD_LETTERS,
   * and each letter after DEAD_LETTER_MS.
   */
  keep(receiver: string, letter: KeptDeadLetter): Promise<void>;
  /** Newest first. */
  of(receiver: string): Promise<readonly KeptDeadLetter[]>;
  forget(receiver: string, id: string): Promise<void>;
}
