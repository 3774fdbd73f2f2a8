import type { DeadLetter } from '../../model/approvals/webhook-report.ts';

/** Most dead letters that are kept for one receiver. */
export const MAX_DEAD_LETTERS = 100;
/** Retention of a dead letter, in ms. */
export const DEAD_LETTER_MS = 7 * 24 * 60 * 60_000;

/** A dead letter with its message, so that the message can be sent again. */
export interface KeptDeadLetter extends DeadLetter {
  readonly body: string;
}

/**
 * Keeps undelivered messages, shared by all replicas and durable over restarts. `receiver` is a
 * unique name. Rejects with `unavailable` if the store is unreachable.
 */
export interface DeadLetters {
  /**
   * Keeps the letter, and replaces a letter with the same id. Drops a receiver's oldest letters
   * beyond MAX_DEAD_LETTERS, and each letter after DEAD_LETTER_MS.
   */
  keep(receiver: string, letter: KeptDeadLetter): Promise<void>;
  /** Returns the letters of a receiver, newest first. */
  of(receiver: string): Promise<readonly KeptDeadLetter[]>;
  /** Forgets a letter; succeeds if it does not exist. */
  forget(receiver: string, id: string): Promise<void>;
}
