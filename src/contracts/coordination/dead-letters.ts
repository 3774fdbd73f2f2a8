import type { DeadLetter } from '../../model/approvals/webhook-report.ts';

/** Dead letters that are kept of one receiver. */
export const MAX_DEAD_LETTERS = 100;
/** A dead letter is forgotten after so long, in ms. */
export const DEAD_LETTER_MS = 7 * 24 * 60 * 60_000;

/** A dead letter with what was to be sent, so that it can be sent again. */
export interface KeptDeadLetter extends DeadLetter {
  readonly body: string;
}

/**
 * Keeps messages that receivers did not take, common to all replicas, over restarts. `receiver` is
 * a name that tells receivers apart. Rejects with `unavailable` where the place is out of reach.
 */
export interface DeadLetters {
  /**
   * Keeps the letter, in place of the one of its id. Of one receiver the oldest go past
   * MAX_DEAD_LETTERS, and each goes after DEAD_LETTER_MS.
   */
  keep(receiver: string, letter: KeptDeadLetter): Promise<void>;
  /** Returns those of a receiver, the newest first. */
  of(receiver: string): Promise<readonly KeptDeadLetter[]>;
  /** Forgets one; not an error where there is none. */
  forget(receiver: string, id: string): Promise<void>;
}
