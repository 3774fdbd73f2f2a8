import type { KeptConsoleSession } from '../../contracts/coordination/console-sessions.ts';
import type { ConsolePerson } from '../../model/console-person.ts';
import type { LoginSource } from './login-limits.ts';

export type LoginMethod = 'password' | 'link' | 'openid';

/** A login that was good. */
export interface LoggedIn {
  /** For the session's cookie; known to the browser alone. */
  readonly token: string;
  /** For the browser's next login; absent where there was a link. */
  readonly device?: string;
  /** The page that the person was going to when a login at a provider began. */
  readonly next?: string;
  readonly person: ConsolePerson;
}

/** Describes a login, besides what shows who it is. */
export interface LoginTerms {
  readonly requestId: string;
  readonly from: LoginSource;
  /** Token of the session that the browser had until now, which ends. */
  readonly replaces: string | undefined;
}

/** The session behind a cookie. */
export interface OpenSession {
  readonly person: ConsolePerson;
  /** Goes with every write of this session, beside the cookie. */
  readonly csrf: string;
  /** The person logged in lately enough to decide approvals. */
  readonly isFresh: boolean;
}

/** A session as lists show it. */
export interface ListedSession extends Pick<
  KeptConsoleSession,
  'openedAt' | 'seenAt' | 'endsAt' | 'operator'
> {
  readonly sessionId: string;
  readonly name: string;
  readonly method: LoginMethod;
  readonly address: string;
}

/** Where OpenID Connect sends the browser, and what is to come back with it, sealed. */
export interface OpenIdStart {
  readonly url: string;
  readonly sealed: string;
}

/** People at the console: who they are, and their sessions. */
export interface ConsoleOperations {
  /** Whether there are people with a password, and a provider of OpenID Connect. */
  readonly loginWays: () => { readonly password: boolean; readonly openId: boolean };
  /** Refuses with FORBIDDEN, the same for every cause, and with RATE_LIMITED. */
  readonly loginByPassword: (
    name: string,
    password: string,
    terms: LoginTerms,
  ) => Promise<LoggedIn>;
  /** Whether the link may still be used. Uses nothing up. */
  readonly isLinkGood: (link: string) => Promise<boolean>;
  /** Each link once. Refuses with FORBIDDEN. */
  readonly loginByLink: (link: string, terms: LoginTerms) => Promise<LoggedIn>;
  /** `again`: the provider asks for a password whatever session the person has there. */
  readonly startOpenId: (start: {
    readonly redirectUri: string;
    readonly replaces: string | undefined;
    readonly again: boolean;
    /** The page that the person is going to. */
    readonly next: string | undefined;
    readonly from: LoginSource;
  }) => Promise<OpenIdStart>;
  /** Refuses with FORBIDDEN what is not the answer to `sealed`, once. */
  readonly loginByOpenId: (
    sealed: string,
    callback: URL,
    terms: Omit<LoginTerms, 'replaces'>,
  ) => Promise<LoggedIn>;
  /** The session, which counts as used; undefined where nobody has it, or may have it. */
  readonly openSession: (token: string) => Promise<OpenSession | undefined>;
  readonly logOut: (token: string) => Promise<void>;
  /** All sessions for an admin, else the person's own; the latest first. */
  readonly listSessions: (person: ConsolePerson) => Promise<readonly ListedSession[]>;
  /** Refuses with NOT_FOUND what the person does not see. */
  readonly endSession: (person: ConsolePerson, sessionId: string) => Promise<void>;
  /** Ends all sessions of the person; returns how many. */
  readonly endSessionsOf: (person: ConsolePerson) => Promise<number>;
}
