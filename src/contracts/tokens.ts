import type { InstanceId } from '../model/identifiers.ts';
import type { Tenant } from '../model/tenant.ts';

/** Most unredeemed tokens at a time: of all, of one sandbox, of one tenant. */
export const MAX_TOKENS = 10_000;
export const MAX_TOKENS_OF_SANDBOX = 64;
export const MAX_TOKENS_OF_TENANT = 512;

/** Sandbox and tenant that are charged for a token until it is redeemed or expires. */
export interface TokenHolder {
  readonly sandbox: InstanceId;
  /** Tenant that requested the token. */
  readonly tenant: Tenant;
}

export interface Tokens {
  /**
   * Issues a one-time token of at least 128 random bits that stands for `value` until it is
   * redeemed or `ttlMs` has passed. Refuses with RATE_LIMITED if the sandbox or the tenant has its
   * maximum, and with UNAVAILABLE if all together have.
   */
  issueToken(value: string, ttlMs: number, holder: TokenHolder): Promise<string>;
  /** Returns the value of the token without redeeming it. */
  peekToken(token: string): Promise<string | undefined>;
  /** Returns the value once; undefined if the token is unknown, redeemed or expired. */
  redeemToken(token: string): Promise<string | undefined>;
}
