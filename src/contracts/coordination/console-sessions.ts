/** Most console sessions at one time: of all persons, and of one person. */
export const MAX_CONSOLE_SESSIONS = 1_000;
export const MAX_CONSOLE_SESSIONS_OF_PERSON = 16;

/** A stored session. Times in ms. */
export interface KeptConsoleSession {
  /** Hash of the session's token. The token itself is not stored. */
  readonly id: string;
  /** Identity of the person. */
  readonly operator: string;
  readonly openedAt: number;
  readonly seenAt: number;
  /** Absolute end of the session, however much it is used. */
  readonly endsAt: number;
  /** Further data of the session. */
  readonly value: string;
}

export interface NewConsoleSession extends Pick<KeptConsoleSession, 'id' | 'operator' | 'value'> {
  /** Idle timeout in ms. */
  readonly idleMs: number;
  /** Maximum lifetime in ms. */
  readonly lifeMs: number;
  /** The browser's previous session, which ends in the same step. */
  readonly replaces: string | undefined;
}

/** Sessions of people at the console. Rejects with `unavailable` if the store is unreachable. */
export interface ConsoleSessions {
  /**
   * Stores a new session. Ends the person's oldest session beyond MAX_CONSOLE_SESSIONS_OF_PERSON.
   * Refuses with UNAVAILABLE if there are MAX_CONSOLE_SESSIONS in all.
   */
  openConsoleSession(session: NewConsoleSession): Promise<void>;
  /** Returns the session and records its use; undefined once it has ended. */
  useConsoleSession(id: string): Promise<KeptConsoleSession | undefined>;
  /** Ends the session on every replica at once; false if it does not exist. */
  endConsoleSession(id: string): Promise<boolean>;
  /** Ends all sessions of a person; returns their number. */
  endConsoleSessionsOf(operator: string): Promise<number>;
  /** Returns all current sessions, unordered. */
  consoleSessions(): Promise<readonly KeptConsoleSession[]>;
}
