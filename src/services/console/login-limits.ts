import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { RateLimits } from '../../contracts/coordination/rate-limits.ts';
import { Refusal } from '../../model/refusals.ts';

export interface LoginSource {
  readonly address: string;
  readonly device: string | undefined;
}

const MINUTE_MS = 60_000;
/** Attempts per window in ms: the more attempts, the longer the delay. */
const ATTEMPTS: readonly (readonly [number, number])[] = [
  [6, MINUTE_MS],
  [15, 15 * MINUTE_MS],
  [40, 4 * 60 * MINUTE_MS],
];
/** Over all addresses, without browsers that logged in before. */
const ATTEMPTS_ON_ACCOUNT = [200, 60 * MINUTE_MS] as const;
const ATTEMPTS_OF_ADDRESS = [60, 15 * MINUTE_MS] as const;
const ANSWERS = [5, 15 * MINUTE_MS] as const;
/** Longer than a login at a provider may take. */
const ONCE = [1, 15 * MINUTE_MS] as const;
/** No operator has this name. */
const AT_PROVIDER = 'at a provider';
/** Unknown accounts share these counters, so that made-up names evict none. */
const UNKNOWN_ACCOUNTS = 64;

/**
 * Counts attempts before their password is checked: by account and address, by address, and by
 * account. A browser that logged in to an account before has its own counter for it (device
 * cookies, in OWASP's term), so strangers who try an account never lock its owner out.
 */
export class LoginLimits {
  readonly #limits: RateLimits;
  readonly #key: Buffer;

  constructor(limits: RateLimits, key: Buffer) {
    this.#limits = limits;
    this.#key = key;
  }

  /**
   * Refuses with RATE_LIMITED. `mark` changes with the account's password; undefined if the account
   * does not exist.
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

  async countLink({ address }: LoginSource): Promise<void> {
    await this.#countAll([[`login-link/${address}`, ...ATTEMPTS_OF_ADDRESS]]);
  }

  /** For a login that begins at a provider; by browser or address. Refuses like `count`. */
  async countBegun({ address, device }: LoginSource): Promise<void> {
    const known = this.#deviceIn(AT_PROVIDER, device);
    const own = known === undefined ? address : `device ${hashOf(known)}`;
    await this.#countAll([[`login-provider/${own}`, ...ATTEMPTS_OF_ADDRESS]]);
  }

  async countAnswer(state: string): Promise<void> {
    await this.#countAll([[`login-answer/${hashOf(state)}`, ...ANSWERS]]);
  }

  /** A login is valid once, even if the provider accepts its codes twice. */
  async isFirst(state: string): Promise<boolean> {
    return (await this.#limits.countWithin(`login-proven/${hashOf(state)}`, ...ONCE)).within;
  }

  /**
   * For the browser's next login to the account, or at a provider. Becomes invalid when the
   * account's password changes.
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

  /** Only one spelling of a token is valid. */
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
