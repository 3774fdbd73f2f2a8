import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { RateLimits } from '../../contracts/coordination/rate-limits.ts';
import { Refusal } from '../../model/refusals.ts';

/** From where somebody tries to log in. */
export interface LoginSource {
  /** An address, or what counts as one. */
  readonly address: string;
  /** The mark that the browser got at an earlier login. */
  readonly device: string | undefined;
}

const MINUTE_MS = 60_000;
/**
 * How many attempts there may be, in ms each: the more there were, the longer it takes until the
 * next ones.
 */
const ATTEMPTS: readonly (readonly [number, number])[] = [
  [6, MINUTE_MS],
  [15, 15 * MINUTE_MS],
  [40, 4 * 60 * MINUTE_MS],
];
/** Counts all addresses together, but no browsers that logged in before. */
const ATTEMPTS_ON_ACCOUNT = [200, 60 * MINUTE_MS] as const;
const ATTEMPTS_OF_ADDRESS = [60, 15 * MINUTE_MS] as const;
const ANSWERS = [5, 15 * MINUTE_MS] as const;
/** For longer than a login at a provider may be under way. */
const ONCE = [1, 15 * MINUTE_MS] as const;
/** Stands for the account of browsers that logged in at a provider; no operator has the name. */
const AT_PROVIDER = 'at a provider';
/** Accounts that don't exist share so many counts, so that made-up names push out no count. */
const UNKNOWN_ACCOUNTS = 64;

/**
 * Counts attempts to log in, before their password is looked at, on all replicas together: by
 * account and address, by address, and by account. What counts on an account is counted apart for
 * each browser that logged in to it before (device cookies, as OWASP calls them), so that strangers
 * who try an account never keep its owner out.
 */
export class LoginLimits {
  readonly #limits: RateLimits;
  readonly #key: Buffer;

  constructor(limits: RateLimits, key: Buffer) {
    this.#limits = limits;
    this.#key = key;
  }

  /**
   * Counts one; refuses with RATE_LIMITED where there were too many. `mark` tells the account's
   * password from its earlier ones; undefined: there is no such account.
   */
  async count(
    account: string,
    mark: string | undefined,
    { address, device }: LoginSource,
  ): Promise<void> {
    const known = mark === undefined ? undefined : this.#deviceIn(`${account} ${mark}`, device);
    const name = mark === undefined ? `-${bucketOf(account)}` : account;
    const own = known === undefined ? `${address} ${name}` : `device ${hashOf(known)}`;
    const counts: (readonly [string, number, number])[] = ATTEMPTS.map(
      ([most, ms]) => [`login-${ms}/${own}`, most, ms] as const,
    );
    if (known === undefined)
      counts.push(
        [`login-address/${address}`, ...ATTEMPTS_OF_ADDRESS],
        [`login-account/${name}`, ...ATTEMPTS_ON_ACCOUNT],
      );
    await this.#countAll(counts);
  }

  /** Counts a link that is none; refuses as `count` does. */
  async countLink({ address }: LoginSource): Promise<void> {
    await this.#countAll([[`login-link/${address}`, ...ATTEMPTS_OF_ADDRESS]]);
  }

  /** Counts a login that begins at a provider, by browser or address; refuses as `count` does. */
  async countBegun({ address, device }: LoginSource): Promise<void> {
    const known = this.#deviceIn(AT_PROVIDER, device);
    const own = known === undefined ? address : `device ${hashOf(known)}`;
    await this.#countAll([[`login-provider/${own}`, ...ATTEMPTS_OF_ADDRESS]]);
  }

  /** Counts an answer to a login that began, by its `state`; refuses as `count` does. */
  async countAnswer(state: string): Promise<void> {
    await this.#countAll([[`login-answer/${hashOf(state)}`, ...ANSWERS]]);
  }

  /**
   * Whether a login that a provider proved, by its `state`, is proved for the first time: it is
   * good once, also at a provider that takes its codes twice.
   */
  async isFirst(state: string): Promise<boolean> {
    return (await this.#limits.countWithin(`login-proven/${hashOf(state)}`, ...ONCE)).within;
  }

  /**
   * Makes what the browser shows at its next login to the account, or at a provider. It counts for
   * nothing once the account has another password.
   */
  deviceOf(account?: { readonly name: string; readonly mark: string }): string {
    const id = randomBytes(16).toString('base64url');
    const of = account ? `${account.name} ${account.mark}` : AT_PROVIDER;
    return `${id}.${this.#sealOf(of, id)}`;
  }

  async #countAll(counts: readonly (readonly [string, number, number])[]): Promise<void> {
    for (const count of counts) {
      const { within, retryAfterMs } = await this.#limits.countWithin(...count);
      if (!within) throw tooManyLogins(Math.max(1, Math.ceil(retryAfterMs / 1_000)));
    }
  }

  /** The browser's mark, which is counted on: it is told in one way alone. */
  #deviceIn(account: string, device: string | undefined): string | undefined {
    const [id = ''] = (device ?? '').split('.', 1);
    const right = Buffer.from(`${id}.${this.#sealOf(account, id)}`);
    const given = Buffer.from(device ?? '');
    return given.length === right.length && timingSafeEqual(given, right) ? id : undefined;
  }

  #sealOf(account: string, id: string): string {
    return createHmac('sha256', this.#key).update(`${id} ${account}`).digest('base64url');
  }
}

export const tooManyLogins = (retryAfter: number): Refusal =>
  new Refusal('RATE_LIMITED', 'too many attempts to log in', {
    retryAfter,
    detail: {
      hint: 'wait for Retry-After seconds, or have `sandpool console login` print a link',
    },
  });

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64url');

const bucketOf = (account: string): number =>
  createHash('sha256').update(account).digest().readUInt16BE() % UNKNOWN_ACCOUNTS;
