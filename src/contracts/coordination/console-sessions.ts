/** Sessions of the console that are kept at one time: of all persons, and of one. */
export const MAX_CONSOLE_SESSIONS = 1_000;
export const MAX_CONSOLE_SESSIONS_OF_PERSON = 16;

/** A session as it is kept. Times in ms. */
export interface KeptConsoleSession {
  /** Hash of the session's token: the token itself is kept nowhere. */
  readonly id: string;
  /** Identity of the person. */
  readonly operator: string;
  readonly openedAt: number;
  readonly seenAt: number;
  /** When it ends, however much it is used. */
  readonly endsAt: number;
  /** Holds what else is known of it. */
  readonly value: string;
}

export interface NewConsoleSession extends Pick<KeptConsoleSession, 'id' | 'operator' | 'value'> {
  /** Ends it when it was not used for so long, in ms. */
  readonly idleMs: number;
  /** Ends it in any case, in ms. */
  readonly lifeMs: number;
  /** A session that ends in the same step: the one that the browser had before. */
  readonly replaces: string | undefined;
}

/** Sessions of people at the console. Rejects with `unavailable` where they can't be known. */
export interface ConsoleSessions {
  /**
   * Keeps a new one. The person's oldest goes where they have MAX_CONSOLE_SESSIONS_OF_PERSON;
   * refuses with UNAVAILABLE where MAX_CONSOLE_SESSIONS of all are kept.
   */
  openConsoleSession(session: NewConsoleSession): Promise<void>;
  /** Returns the session and notes that it was used now; undefined once it has ended. */
  useConsoleSession(id: string): Promise<KeptConsoleSession | undefined>;
  /** Ends it on every replica at once; false where there is none. */
  endConsoleSession(id: string): Promise<boolean>;
  /** Ends all sessions of a person; returns how many there were. */
  endConsoleSessionsOf(operator: string): Promise<number>;
  /** Returns all that have not ended, in no order. */
  consoleSessions(): Promise<readonly KeptConsoleSession[]>;
}
