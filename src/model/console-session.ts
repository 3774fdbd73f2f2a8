/**
 * A person who is logged in at the console. A session lacks an API key's rights, but may decide
 * approvals.
 */
export interface ConsoleSession {
  readonly kind: 'session';
  readonly sessionId: string;
  /**
   * A local operator's name, or issuer and subject of OpenID Connect, equal for all sessions of the
   * person.
   */
  readonly operator: string;
  readonly users?: readonly string[];
  readonly role: ConsoleRole;
  /** In ms. */
  readonly authenticatedAt: number;
}

/**
 * `viewer` only reads, `operator` also decides approvals, `admin` also changes operators and
 * sessions.
 */
export type ConsoleRole = 'viewer' | 'operator' | 'admin';

/** An operator or an admin with a known identity. */
export const mayDecide = ({ role, operator }: ConsoleSession): boolean =>
  role !== 'viewer' && operator !== '';
