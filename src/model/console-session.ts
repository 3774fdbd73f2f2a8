/**
 * A person who is logged in at the console, as a request shows it. A session is not an API key and
 * has none of a key's rights, but it may decide approvals.
 */
export interface ConsoleSession {
  readonly kind: 'session';
  readonly sessionId: string;
  /**
   * Identity of the person, the same for all of their sessions: a local operator's name, or issuer
   * and subject of OpenID Connect.
   */
  readonly operator: string;
  /** Other names of the person, such as those of users whose keys they have. */
  readonly users?: readonly string[];
  readonly role: ConsoleRole;
  /** Time of the last login, in ms. */
  readonly authenticatedAt: number;
}

/**
 * Rights of a session: `viewer` only reads, `operator` also decides approvals, `admin` also changes
 * operators and sessions.
 */
export type ConsoleRole = 'viewer' | 'operator' | 'admin';

/** Whether the session may decide approvals: an operator or an admin with a known identity. */
export const mayDecide = ({ role, operator }: ConsoleSession): boolean =>
  role !== 'viewer' && operator !== '';
