import type { Tenant } from '../model/tenant.ts';

export type QuotaResource = 'sandboxes' | 'pools' | 'replicas';

/** Where a lease stands. `epoch` moves each time it is won; what carries an older one must not be carried out. */
export interface Lease {
  readonly epoch: number;
  /** Still ours at this very moment. */
  held(): boolean;
}

/**
 * What replicas share for a short while. Every call is one atomic step, ends in about a second, and rejects with
 * `unavailable` when the place that keeps it is out of reach: it never guesses.
 */
export interface Coordination {
  /**
   * Adds `amount` under `name` to the tenant's usage, unless that goes over the limit. Repeating a name replaces its
   * amount. Answers false, and changes nothing, where the limit would be passed.
   */
  reserve(tenant: Tenant, resource: QuotaResource, entry: { readonly name: string; readonly amount: number; readonly limit: number }): Promise<boolean>;
  /** Removes the name's part. May be repeated. */
  release(tenant: Tenant, resource: QuotaResource, name: string): Promise<void>;
  /** A one-time token of at least 128 random bits that stands for `value` until it is redeemed or `ttlMs` has passed. */
  issueToken(value: string, ttlMs: number): Promise<string>;
  /** The value, once; undefined for a token that is unknown, used or too old. */
  redeemToken(token: string): Promise<string | undefined>;
  /** The shard's lease if this replica holds it. */
  lease(shard: number): Lease | undefined;
}
