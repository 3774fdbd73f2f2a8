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

  /** Counts one; refuses with RATE_LIMITED where there were too many. */
  async count(account: string, exists: boolean, { address, device }: LoginSource): Promise<void> {
    const known = this.#deviceIn(account, device);
    const name = exists ? account : `-${bucketOf(account)}`;
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

  /** Makes what the browser shows at its next login to the account, or at a provider. */
  deviceOf(account = AT_PROVIDER): string {
    const id = randomBytes(16).toString('base64url');
    return `${id}.${this.#sealOf(account, id)}`;
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
