import type { ConsoleRole } from '../model/console-session.ts';

export interface ProvenIdentity {
  /** Issuer and subject, which identify the person permanently. */
  readonly identity: string;
  readonly name: string;
  /** From the claims and the settings; absent if neither gives the person a role here. */
  readonly role: ConsoleRole | undefined;
  /** Their API keys belong to the person. */
  readonly users: readonly string[];
  /** In ms, at the provider; absent if the provider does not report it. */
  readonly authenticatedAt: number | undefined;
}

/** The answer to one login must match these; a secret of the browser that began it. */
export interface ExpectedAnswer {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly redirectUri: string;
  readonly again: boolean;
}

export interface IdentityProvider {
  /** Rejects with `unavailable` if the provider does not answer. */
  begin(terms: Pick<ExpectedAnswer, 'redirectUri' | 'again'>): Promise<{
    readonly url: string;
    readonly expected: ExpectedAnswer;
  }>;
  /**
   * By the code flow with PKCE, state, nonce and the signature of the ID token. Rejects with
   * FORBIDDEN if the answer proves no identity.
   */
  finish(callback: URL, expected: ExpectedAnswer): Promise<ProvenIdentity>;
}
