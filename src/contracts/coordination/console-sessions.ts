export const MAX_CONSOLE_SESSIONS = 1_000;
export const MAX_CONSOLE_SESSIONS_OF_PERSON = 16;

/** Times in ms. */
export interface KeptConsoleSession {
  /** Hash of the session's token, which is not stored. */
  readonly id: string;
  readonly operator: string;
  readonly openedAt: number;
  readonly seenAt: number;
  /** However much the session is used. */
  readonly endsAt: number;
  readonly value: string;
}

export interface NewConsoleSession extends Pick<KeptConsoleSession, 'id' | 'operator' | 'value'> {
  /** In ms. */
  readonly idleMs: number;
  /** In ms. */
  readonly lifeMs: number;
  /** The browser's previous session, which ends in the same step. */
  readonly replaces: string | undefined;
}

/** Rejects with `unavailable` if the store is unreachable. */
export interface ConsoleSessions {
  /**
   * Ends the person's oldest session beyond MAX_CONSOLE_SESSIONS_OF_PERSON. Refuses with
   * UNAVAILABLE if there are MAX_CONSOLE_SESSIONS in all.
   */
  openConsoleSession(session: NewConsoleSession): Promise<void>;
  /** Records the session's use; undefined once it has ended. */
  useConsoleSession(id: string): Promise<KeptConsoleSession | undefined>;
  /** On every replica at once; false if it does not exist. */
  endConsoleSession(id: string): Promise<boolean>;
  endConsoleSessionsOf(operator: string): Promise<number>;
  /** Unordered. */
  consoleSessions(): Promise<readonly KeptConsoleSession[]>;
}
