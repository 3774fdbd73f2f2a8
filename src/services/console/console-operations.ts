import type { KeptConsoleSession } from '../../contracts/coordination/console-sessions.ts';
import type { ConsolePerson } from '../../model/console-person.ts';
import type { LoginSource } from './login-limits.ts';

export type LoginMethod = 'password' | 'link' | 'openid';

export interface LoggedIn {
  /** For the session's cookie; only the browser knows it. */
  readonly token: string;
  readonly device?: string;
  readonly next?: string;
  readonly person: ConsolePerson;
}

export interface LoginTerms {
  readonly requestId: string;
  readonly from: LoginSource;
  /** The browser's previous session, which ends. */
  readonly replaces: string | undefined;
}

export interface OpenSession {
  readonly person: ConsolePerson;
  /** Required with every write of this session, beside the cookie. */
  readonly csrf: string;
  readonly isFresh: boolean;
}

export interface ListedSession extends Pick<
  KeptConsoleSession,
  'openedAt' | 'seenAt' | 'endsAt' | 'operator'
> {
  readonly sessionId: string;
  readonly name: string;
  readonly method: LoginMethod;
  readonly address: string;
}

/** The sealed state must come back. */
export interface OpenIdStart {
  readonly url: string;
  readonly sealed: string;
}

export interface ConsoleOperations {
  readonly loginWays: () => { readonly password: boolean; readonly openId: boolean };
  /** Refuses with FORBIDDEN, which is the same for every cause, and with RATE_LIMITED. */
  readonly loginByPassword: (
    name: string,
    password: string,
    terms: LoginTerms,
  ) => Promise<LoggedIn>;
  /** Does not use up the link. */
  readonly isLinkGood: (link: string) => Promise<boolean>;
  /** Each link works once. Refuses with FORBIDDEN. */
  readonly loginByLink: (link: string, terms: LoginTerms) => Promise<LoggedIn>;
  /** `again`: the provider requires a new login despite an existing session. */
  readonly startOpenId: (start: {
    readonly redirectUri: string;
    readonly replaces: string | undefined;
    readonly again: boolean;
    readonly next: string | undefined;
    readonly from: LoginSource;
  }) => Promise<OpenIdStart>;
  /** Accepts each answer once. Refuses with FORBIDDEN an answer that does not match `sealed`. */
  readonly loginByOpenId: (
    sealed: string,
    callback: URL,
    terms: Omit<LoginTerms, 'replaces'>,
  ) => Promise<LoggedIn>;
  /** Records the session's use; undefined if it is no longer permitted. */
  readonly openSession: (token: string) => Promise<OpenSession | undefined>;
  readonly logOut: (token: string) => Promise<void>;
  readonly listSessions: (person: ConsolePerson) => Promise<readonly ListedSession[]>;
  readonly endSession: (person: ConsolePerson, sessionId: string) => Promise<void>;
  readonly endSessionsOf: (person: ConsolePerson) => Promise<number>;
}
