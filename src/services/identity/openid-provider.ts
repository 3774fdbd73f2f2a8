import type * as OpenIdClient from 'openid-client';
import type {
  ExpectedAnswer,
  IdentityProvider,
  ProvenIdentity,
} from '../../contracts/identity-provider.ts';
import type { Log } from '../../contracts/log.ts';
import type { ConsoleRole } from '../../model/console-session.ts';
import { forbidden, unavailable } from '../../model/refusals.ts';

export interface OpenIdSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  readonly scopes: readonly string[];
  /** Its value is a text or a list of texts. */
  readonly roleClaim: string;
  /** Values of the role claim for each role. */
  readonly roles: Readonly<Record<ConsoleRole, readonly string[]>>;
  /** Claim with the user whose API keys belong to the person. */
  readonly userClaim: string;
}

const TIMEOUT_SECONDS = 10;
/** Between a login at the provider and the exchange of its code. */
const FRESH_SECONDS = 300;
/** A request with a maximum age also makes the provider report the age. */
const OLDEST_SECONDS = 12 * 3_600;
const CLOCK_TOLERANCE_SECONDS = 30;

/** Loads the library at the first login. */
export class OpenIdProvider implements IdentityProvider {
  readonly #settings: OpenIdSettings;
  readonly #log: Log;
  #configured: Promise<Configured> | undefined;

  constructor(settings: OpenIdSettings, log: Log) {
    this.#settings = settings;
    this.#log = log;
  }

  async begin({ redirectUri, again }: Pick<ExpectedAnswer, 'redirectUri' | 'again'>) {
    const { library, config } = await this.#configuration();
    const verifier = library.randomPKCECodeVerifier();
    const expected: ExpectedAnswer = {
      state: library.randomState(),
      nonce: library.randomNonce(),
      verifier,
      redirectUri,
      again,
    };
    const url = library.buildAuthorizationUrl(config, {
      redirect_uri: redirectUri,
      scope: this.#settings.scopes.join(' '),
      code_challenge: await library.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state: expected.state,
      nonce: expected.nonce,
      max_age: String(again ? FRESH_SECONDS : OLDEST_SECONDS),
      ...(again ? { prompt: 'login' } : {}),
    });
    return { url: url.href, expected };
  }

  async finish(callback: URL, expected: ExpectedAnswer): Promise<ProvenIdentity> {
    const { library, config } = await this.#configuration();
    const url = new URL(expected.redirectUri);
    url.search = callback.search;
    try {
      const tokens = await library.authorizationCodeGrant(config, url, {
        expectedState: expected.state,
        expectedNonce: expected.nonce,
        pkceCodeVerifier: expected.verifier,
        idTokenExpected: true,
        ...(expected.again ? { maxAge: FRESH_SECONDS } : {}),
      });
      const claims = tokens.claims();
      if (!claims) throw new Error('there is no ID token');
      return this.#identityOf(claims);
    } catch (error) {
      this.#log.warn({ reason: reasonOf(error) }, 'openid-login-failed');
      throw forbidden('the provider’s answer does not identify a person');
    }
  }

  #identityOf(claims: OpenIdClient.IDToken): ProvenIdentity {
    const { roleClaim, roles, userClaim } = this.#settings;
    const values = textsOf(claims[roleClaim]);
    const has = (role: ConsoleRole): boolean => roles[role].some((value) => values.includes(value));
    const role = (['admin', 'operator', 'viewer'] as const).find(has);
    const users = textsOf(claims[userClaim]);
    // such a person's requests are not attributable, so the person decides nothing
    const mustOnlyLook = users.length === 0 || users.length > MOST_USERS;
    if (mustOnlyLook && role !== undefined)
      this.#log.warn({ claim: userClaim, users: users.length }, 'openid-person-read-only');
    return {
      identity: `${claims.iss}#${claims.sub}`,
      name: (users[0] ?? claims.sub).slice(0, LONGEST),
      role: mustOnlyLook && role !== undefined ? 'viewer' : role,
      users: users.slice(0, MOST_USERS).map((user) => user.slice(0, LONGEST)),
      authenticatedAt: typeof claims.auth_time === 'number' ? claims.auth_time * 1_000 : undefined,
    };
  }

  async #configuration(): Promise<Configured> {
    this.#configured ??= configure(this.#settings);
    try {
      return await this.#configured;
    } catch (error) {
      this.#configured = undefined;
      const reason = reasonOf(error);
      this.#log.warn({ reason }, 'openid-provider-not-reached');
      throw unavailable('the OpenID Connect provider can’t be reached', 10);
    }
  }
}

interface Configured {
  readonly library: typeof OpenIdClient;
  readonly config: OpenIdClient.Configuration;
}

/** Allows plain HTTP only for a provider on this machine. */
const configure = async ({
  issuer,
  clientId,
  clientSecret,
}: OpenIdSettings): Promise<Configured> => {
  const library = await import('openid-client');
  const config = await library.discovery(
    new URL(issuer),
    clientId,
    { [library.clockTolerance]: CLOCK_TOLERANCE_SECONDS },
    clientSecret === undefined ? library.None() : library.ClientSecretBasic(clientSecret),
    {
      timeout: TIMEOUT_SECONDS,
      execute: [
        library.enableNonRepudiationChecks,
        ...(issuer.startsWith('http://') ? [library.allowInsecureRequests] : []),
      ],
    },
  );
  return { library, config };
};

/** Only message and code: causes may contain the provider's response, including tokens. */
const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return 'unknown';
  const code = 'code' in error && typeof error.code === 'string' ? `${error.code}: ` : '';
  return (code + error.message).slice(0, LONGEST);
};

const LONGEST = 256;
const MOST_USERS = 32;

const textsOf = (claim: unknown): readonly string[] =>
  (Array.isArray(claim) ? claim : [claim]).filter(
    (value): value is string => typeof value === 'string' && value !== '',
  );
