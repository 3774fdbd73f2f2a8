import { createHash, randomBytes } from 'node:crypto';
import type { AuditSink } from '../../contracts/audit.ts';
import type { Clock } from '../../contracts/clock.ts';
import type {
  ConsoleSessions,
  KeptConsoleSession,
} from '../../contracts/coordination/console-sessions.ts';
import type { IdentityProvider } from '../../contracts/identity-provider.ts';
import type { Operators, Passwords } from '../../contracts/operators.ts';
import type { Tokens } from '../../contracts/tokens.ts';
import { OWNER, type ConsolePerson } from '../../model/console-person.ts';
import { forbidden, Refusal, unavailable } from '../../model/refusals.ts';
import type {
  ConsoleOperations,
  ListedSession,
  LoggedIn,
  LoginMethod,
  LoginTerms,
  OpenIdStart,
  OpenSession,
} from './console-operations.ts';
import { STEP_UP_MS } from '../approvals/approvals.ts';
import type { LoginLimits } from './login-limits.ts';
import { ExpectedAnswers } from './expected-answers.ts';

export interface ConsoleAccessDeps {
  readonly sessions: ConsoleSessions;
  readonly tokens: Tokens;
  readonly operators: Operators;
  readonly passwords: Passwords;
  readonly limits: LoginLimits;
  readonly provider: IdentityProvider | undefined;
  /** For the browser's state during a login at the provider. */
  readonly sealKey: Buffer;
  readonly clock: Clock;
  readonly audit: AuditSink | undefined;
}

const IDLE_MS = 30 * 60_000;
const LIFE_MS = 12 * 60 * 60_000;
const LINK_MS = 5 * 60_000;
/** The owner of the daemon's folder has the keys of this user, which the daemon makes. */
const OWNERS_USERS = ['default'];
const LINK_PREFIX = 'console-login ';
const LONGEST_NAME = 63;
const LONGEST_PASSWORD = 256;

/** The other fields of a local operator are read again at each use. */
interface SessionValue extends Pick<ConsolePerson, 'name' | 'role' | 'users' | 'authenticatedAt'> {
  readonly method: LoginMethod;
  readonly address: string;
  readonly of?: string;
}

export class ConsoleAccess implements ConsoleOperations {
  readonly #deps: ConsoleAccessDeps;
  readonly #answers: ExpectedAnswers;

  constructor(deps: ConsoleAccessDeps) {
    this.#deps = deps;
    this.#answers = new ExpectedAnswers(deps.sealKey, deps.clock);
  }

  readonly loginWays = () => ({
    password: this.#deps.operators.list().length > 0,
    openId: this.#deps.provider !== undefined,
  });

  readonly loginByPassword = async (
    name: string,
    password: string,
    terms: LoginTerms,
  ): Promise<LoggedIn> => {
    const { operators, passwords, limits } = this.#deps;
    const account = name.slice(0, LONGEST_NAME + 1);
    const operator = operators.find(account);
    await limits.count(account, operator && markOf(operator), terms.from);
    const isRight =
      (await passwords.verify(password.slice(0, LONGEST_PASSWORD), operator?.passwordHash)) &&
      password.length <= LONGEST_PASSWORD;
    if (!operator || !isRight || operators.isLocked(operator.name))
      throw this.#refused('password', terms, account);
    const loggedIn = await this.#open({
      terms,
      operator: operator.name,
      value: {
        ...pick(operator),
        method: 'password',
        address: terms.from.address,
        authenticatedAt: this.#deps.clock.now(),
      },
    });
    const device = limits.deviceOf({ name: operator.name, mark: markOf(operator) });
    return { ...loggedIn, device };
  };

  /**
   * For the owner of the data folder, or for an operator if there are any. Refuses a missing or
   * locked operator.
   */
  async issueLink(as: string | undefined): Promise<string> {
    const { operators, tokens } = this.#deps;
    if (as !== undefined && (!operators.find(as) || operators.isLocked(as)))
      throw forbidden(`the operator ${as} does not exist or is locked`);
    if (as === undefined && operators.list().length > 0)
      throw forbidden('there are operators: name the operator to log in with --as NAME');
    return await tokens.issueToken(LINK_PREFIX + (as ?? OWNER), LINK_MS, {
      sandbox: 'console',
      tenant: { namespace: '', team: '', user: '' },
    });
  }

  readonly isLinkGood = async (link: string): Promise<boolean> =>
    (await this.#deps.tokens.peekToken(link))?.startsWith(LINK_PREFIX) ?? false;

  readonly loginByLink = async (link: string, terms: LoginTerms): Promise<LoggedIn> => {
    const { operators, tokens, clock, limits } = this.#deps;
    const isGood = await this.isLinkGood(link);
    // a valid link is not a guess, so an attacker at the same address can't lock its owner out
    if (!isGood) await limits.countLink(terms.from);
    const value = isGood ? await tokens.redeemToken(link) : undefined;
    if (value === undefined) throw this.#refused('link', terms);
    const name = value.slice(LINK_PREFIX.length);
    const operator = operators.find(name);
    const isOwner = name === OWNER && !operator && operators.list().length === 0;
    if ((!operator && !isOwner) || operators.isLocked(name))
      throw this.#refused('link', terms, name);
    return await this.#open({
      terms,
      operator: name,
      value: {
        ...(operator ? pick(operator) : { name: OWNER, role: 'admin', users: OWNERS_USERS }),
        method: 'link',
        address: terms.from.address,
        authenticatedAt: clock.now(),
      },
    });
  };

  readonly startOpenId: ConsoleOperations['startOpenId'] = async ({
    redirectUri,
    replaces,
    again,
    next,
    from,
  }): Promise<OpenIdStart> => {
    const { provider, limits } = this.#deps;
    if (!provider) throw forbidden('logins by OpenID Connect are not set up');
    await limits.countBegun(from);
    const { url, expected } = await provider.begin({ redirectUri, again });
    return {
      url,
      sealed: this.#answers.seal({
        expected,
        replaces: replaces === undefined ? undefined : idOf(replaces),
        next,
      }),
    };
  };

  readonly loginByOpenId: ConsoleOperations['loginByOpenId'] = async (sealed, callback, terms) => {
    const { provider, operators, clock, limits } = this.#deps;
    const waited = this.#answers.open(sealed);
    // not this browser's login: neither counted nor audited
    if (!provider || !waited) throw forbidden(REFUSED.openid);
    await limits.countAnswer(waited.expected.state);
    const { identity, role, name, users, authenticatedAt } = await provider
      .finish(callback, waited.expected)
      .catch((error: unknown) => {
        if (error instanceof Refusal && error.code === 'FORBIDDEN')
          throw this.#refused('openid', terms);
        throw error;
      });
    const isFirst = await limits.isFirst(waited.expected.state);
    if (!isFirst || role === undefined || operators.isLocked(identity))
      throw this.#refused('openid', terms, identity);
    const now = clock.now();
    const loggedIn = await this.#open({
      terms,
      operator: identity,
      replacesId: waited.replaces,
      value: {
        name,
        role,
        users,
        method: 'openid',
        address: terms.from.address,
        authenticatedAt: Math.min(now, authenticatedAt ?? now),
      },
    });
    return {
      ...loggedIn,
      device: limits.deviceOf(),
      ...(waited.next === undefined ? {} : { next: waited.next }),
    };
  };

  readonly openSession = async (token: string): Promise<OpenSession | undefined> => {
    const { sessions } = this.#deps;
    const kept = TOKEN.test(token) ? await sessions.useConsoleSession(idOf(token)) : undefined;
    if (!kept) return undefined;
    const person = this.#personOf(kept);
    if (person) {
      const isFresh = this.#deps.clock.now() - person.authenticatedAt <= STEP_UP_MS;
      return { person, csrf: csrfOf(token), isFresh };
    }
    await sessions.endConsoleSession(kept.id);
    return undefined;
  };

  readonly logOut = async (token: string): Promise<void> => {
    await this.#deps.sessions.endConsoleSession(idOf(token));
  };

  readonly listSessions = async (person: ConsolePerson): Promise<readonly ListedSession[]> =>
    (await this.#deps.sessions.consoleSessions())
      .filter(({ operator }) => person.role === 'admin' || operator === person.operator)
      .map(listed)
      .toSorted((a, b) => b.openedAt - a.openedAt);

  readonly endSession = async (person: ConsolePerson, sessionId: string): Promise<void> => {
    const seen = await this.listSessions(person);
    if (!seen.some((session) => session.sessionId === sessionId))
      throw new Refusal('NOT_FOUND', 'session not found');
    await this.#deps.sessions.endConsoleSession(sessionId);
  };

  readonly endSessionsOf = (person: Pick<ConsolePerson, 'operator'>): Promise<number> =>
    this.#deps.sessions.endConsoleSessionsOf(person.operator);

  async #open({
    terms,
    operator,
    value,
    replacesId,
  }: {
    readonly terms: Pick<LoginTerms, 'requestId'> & Partial<Pick<LoginTerms, 'replaces'>>;
    readonly operator: string;
    readonly value: SessionValue;
    readonly replacesId?: string;
  }): Promise<LoggedIn> {
    const token = randomBytes(32).toString('base64url');
    const id = idOf(token);
    await this.#deps.sessions.openConsoleSession({
      id,
      operator,
      value: JSON.stringify(value),
      idleMs: IDLE_MS,
      lifeMs: LIFE_MS,
      replaces: replacesId ?? (terms.replaces === undefined ? undefined : idOf(terms.replaces)),
    });
    const session = await this.openSession(token);
    if (!session) throw unavailable('the login could not be saved');
    this.#deps.audit?.note({
      requestId: terms.requestId,
      operation: 'logInAtConsole',
      status: 200,
      target: { operator, sessionId: id, method: value.method },
    });
    return { token, person: session.person };
  }

  #personOf(kept: KeptConsoleSession): ConsolePerson | undefined {
    const { operators } = this.#deps;
    const { of, method, address, ...value } = JSON.parse(kept.value) as SessionValue;
    void address;
    const session = { kind: 'session', sessionId: kept.id, operator: kept.operator } as const;
    if (operators.isLocked(kept.operator)) return undefined;
    if (method === 'openid' && !this.#deps.provider) return undefined;
    if (of === undefined)
      return this.#isOwnerWhereThereAreOthers(kept) ? undefined : { ...session, ...value };
    const operator = operators.find(kept.operator);
    if (!operator || markOf(operator) !== of) return undefined;
    const { name, role, users } = pick(operator);
    return { ...session, ...value, name, role, users };
  }

  /** The owner's link is only for a daemon without operators. */
  #isOwnerWhereThereAreOthers({ operator }: KeptConsoleSession): boolean {
    return operator === OWNER && this.#deps.operators.list().length > 0;
  }

  #refused(
    method: LoginMethod,
    { requestId, from }: Pick<LoginTerms, 'requestId' | 'from'>,
    operator?: string,
  ): Refusal {
    this.#deps.audit?.note({
      requestId,
      operation: 'logInAtConsole',
      status: 403,
      errorCode: 'FORBIDDEN',
      target: {
        method,
        address: from.address,
        ...(operator === undefined ? {} : { operator: operator.slice(0, 256) }),
      },
    });
    return forbidden(REFUSED[method]);
  }
}

const REFUSED: Readonly<Record<LoginMethod, string>> = {
  password: 'the name or the password is wrong, or the operator is locked',
  link: 'the link was used already, has expired, or is not valid',
  openid: 'the provider’s answer does not permit a login: try again, or ask for a role',
};

const TOKEN = /^[\w-]{43}$/;

const idOf = (token: string): string => createHash('sha256').update(token).digest('base64url');

const csrfOf = (token: string): string =>
  createHash('sha256').update(`csrf ${token}`).digest('base64url');

interface OperatorLike {
  readonly name: string;
  readonly role: ConsolePerson['role'];
  readonly users: readonly string[];
  readonly passwordHash: string;
  readonly addedAt: string;
}

const pick = (operator: OperatorLike): Pick<SessionValue, 'name' | 'role' | 'users' | 'of'> => ({
  name: operator.name,
  role: operator.role,
  users: [operator.name, ...operator.users],
  of: markOf(operator),
});

/** Changes with the person behind the name, and with the password. */
const markOf = ({ passwordHash, addedAt }: OperatorLike): string =>
  idOf(`${passwordHash} ${addedAt}`);

/** Without any credential. */
export const listed = ({
  id,
  operator,
  value,
  openedAt,
  seenAt,
  endsAt,
}: KeptConsoleSession): ListedSession => {
  const { name, method, address } = JSON.parse(value) as SessionValue;
  return { sessionId: id, operator, name, method, address, openedAt, seenAt, endsAt };
};
