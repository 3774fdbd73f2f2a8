import type { ConsoleRole } from '../model/console-session.ts';

/** A person as a provider of OpenID Connect shows them. */
export interface ProvenIdentity {
  /** Issuer and subject: the same person for ever. */
  readonly identity: string;
  readonly name: string;
  /** By the claims and the settings; absent: nobody gave the person a role here. */
  readonly role: ConsoleRole | undefined;
  /** Users whose API keys are the person's. */
  readonly users: readonly string[];
  /** When the provider last saw the person log in, in ms; absent where it does not say. */
  readonly authenticatedAt: number | undefined;
}

/** Says what the answer to one login must show; a secret of the browser that began it. */
export interface ExpectedAnswer {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly redirectUri: string;
  /** The person must have logged in there anew. */
  readonly again: boolean;
}

export interface IdentityProvider {
  /** Rejects with `unavailable` where the provider does not answer. */
  begin(terms: Pick<ExpectedAnswer, 'redirectUri' | 'again'>): Promise<{
    readonly url: string;
    readonly expected: ExpectedAnswer;
  }>;
  /**
   * The person whom the provider's answer proves, by the code flow with PKCE, state, nonce and the
   * signature of the ID token. Rejects with FORBIDDEN where it proves nobody.
   */
  finish(callback: URL, expected: ExpectedAnswer): Promise<ProvenIdentity>;
}
