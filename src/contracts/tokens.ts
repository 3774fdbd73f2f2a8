import type { InstanceId } from '../model/identifiers.ts';
import type { Tenant } from '../model/tenant.ts';

/** Tokens that wait to be redeemed at one time: of all, of one sandbox, of one tenant. */
export const MAX_TOKENS = 10_000;
export const MAX_TOKENS_OF_SANDBOX = 64;
export const MAX_TOKENS_OF_TENANT = 512;

/** Whom a token is counted for until it is redeemed or too old. */
export interface TokenHolder {
  readonly sandbox: InstanceId;
  /** Who asked for it. */
  readonly tenant: Tenant;
}

export interface Tokens {
  /**
   * A one-time token of at least 128 random bits that stands for `value` until it is redeemed or
   * `ttlMs` has passed. Refuses with RATE_LIMITED where the sandbox or the tenant has as many as
   * may wait, with UNAVAILABLE where all have.
   */
  issueToken(value: string, ttlMs: number, holder: TokenHolder): Promise<string>;
  /** Returns what `redeemToken` would, and leaves the token as it is. */
  peekToken(token: string): Promise<string | undefined>;
  /** The value, once; undefined for a token that is unknown, used or too old. */
  redeemToken(token: string): Promise<string | undefined>;
}
