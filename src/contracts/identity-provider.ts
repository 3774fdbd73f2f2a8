import type { ConsoleRole } from '../model/console-session.ts';

/** A person, as identified by an OpenID Connect provider. */
export interface ProvenIdentity {
  /** Issuer and subject, which identify the person permanently. */
  readonly identity: string;
  readonly name: string;
  /** From the claims and the settings; absent if neither gives the person a role here. */
  readonly role: ConsoleRole | undefined;
  /** Users whose API keys belong to the person. */
  readonly users: readonly string[];
  /** Time of the last login at the provider in ms; absent if the provider does not report it. */
  readonly authenticatedAt: number | undefined;
}

/** Values that the answer to one login must match; a secret of the browser that began it. */
export interface ExpectedAnswer {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly redirectUri: string;
  /** Requires a new login at the provider. */
  readonly again: boolean;
}

export interface IdentityProvider {
  /** Rejects with `unavailable` if the provider does not answer. */
  begin(terms: Pick<ExpectedAnswer, 'redirectUri' | 'again'>): Promise<{
    readonly url: string;
    readonly expected: ExpectedAnswer;
  }>;
  /**
   * Returns the person that the provider's answer proves, by the code flow with PKCE, state, nonce
   * and the signature of the ID token. Rejects with FORBIDDEN if the answer proves no identity.
   */
  finish(callback: URL, expected: ExpectedAnswer): Promise<ProvenIdentity>;
}
