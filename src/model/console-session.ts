/**
 * A person who is logged in at the console, as a request shows it. It is no API key and has none of
 * a key's rights: it is what decides approvals.
 */
export interface ConsoleSession {
  readonly kind: 'session';
  readonly sessionId: string;
  /**
   * Identity of the person, the same over all of their sessions: a local operator's name, or issuer
   * and subject of OpenID Connect.
   */
  readonly operator: string;
  /** Other names that the person is known by, such as those of users whose keys they have. */
  readonly users?: readonly string[];
  readonly role: ConsoleRole;
  /** When the person last logged in, in ms. */
  readonly authenticatedAt: number;
}

/** Says what a session may do: look, decide approvals, change operators and sessions too. */
export type ConsoleRole = 'viewer' | 'operator' | 'admin';

/** Whether the session decides approvals: an operator or an admin whose identity is known. */
export const mayDecide = ({ role, operator }: ConsoleSession): boolean =>
  role !== 'viewer' && operator !== '';
