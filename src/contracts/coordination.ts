import type { RequestMark } from '../model/request-mark.ts';
import type { Tenant } from '../model/tenant.ts';

export type QuotaResource = 'sandboxes' | 'pools' | 'replicas';

/** Where a lease stands. `epoch` moves each time it is won; what carries an older one must not be carried out. */
export interface Lease {
  readonly epoch: number;
  /** Still ours at this very moment. */
  held(): boolean;
}

/** For whom a request under an Idempotency-Key is kept, and for how long from now. */
export interface RequestOwner { readonly principal: string; readonly ttlMs: number }

export type OpenedRequest =
  | { readonly kind: 'new' | 'in-flight' | 'reused' }
  | { readonly kind: 'answered'; readonly answer: string };

/** The longest answer that is kept, in characters. */
export const MAX_KEPT_ANSWER = 65_536;

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
  /**
   * Opens a request under an Idempotency-Key. `new`: it is the caller's to carry out, and stays in flight until it is
   * answered or given up; a request whose replica died is nobody's and new again. `reused`: the key has another body.
   */
  openRequest(mark: RequestMark, owner: RequestOwner): Promise<OpenedRequest>;
  /**
   * Ends a request that is in flight and keeps its answer, a text without NUL of at most MAX_KEPT_ANSWER, for `ttlMs` from now. Durable when it
   * resolves, and before any write of this replica that comes later. Past a limit the oldest answers are forgotten early.
   */
  keepAnswer(mark: RequestMark, owner: RequestOwner, answer: string): Promise<void>;
  /** Ends a request that is in flight without an answer: its repetition is carried out anew. May be repeated. */
  giveUpRequest(mark: RequestMark): Promise<void>;
  /** The shard's lease if this replica holds it. */
  lease(shard: number): Lease | undefined;
}
