import type { InstanceId } from '../model/identifiers.ts';
import type { Tenant } from '../model/tenant.ts';

/** Unredeemed at a time: in all, of one sandbox, of one tenant. */
export const MAX_TOKENS = 10_000;
export const MAX_TOKENS_OF_SANDBOX = 64;
export const MAX_TOKENS_OF_TENANT = 512;

/** Charged for a token until it is redeemed or expires. */
export interface TokenHolder {
  readonly sandbox: InstanceId;
  readonly tenant: Tenant;
}

export interface Tokens {
  /**
   * At least 128 random bits, valid until the token is redeemed or `ttlMs` has passed. Refuses with
   * RATE_LIMITED if the sandbox or the tenant has its maximum, and with UNAVAILABLE if all together
   * have.
   */
  issueToken(value: string, ttlMs: number, holder: TokenHolder): Promise<string>;
  peekToken(token: string): Promise<string | undefined>;
  /** Once; undefined if the token is unknown, redeemed or expired. */
  redeemToken(token: string): Promise<string | undefined>;
}
