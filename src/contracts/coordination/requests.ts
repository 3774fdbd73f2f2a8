import type { InstanceId } from '../../model/identifiers.ts';
import type { RequestFingerprint } from '../../model/request-fingerprint.ts';
import type { Tenant } from '../../model/tenant.ts';

/** Tenant for whom a request under an Idempotency-Key is kept, and for how long from now. */
export interface RequestOwner {
  readonly tenant: Tenant;
  readonly ttlMs: number;
  /**
   * A manager made the key. Such requests are kept apart from clients' requests, and never evict
   * them.
   */
  readonly isOfManager?: true;
}

export type OpenedRequest =
  | ({ readonly kind: 'new' } & EarlierRequest)
  | { readonly kind: 'in-flight' | 'reused' }
  | { readonly kind: 'answered'; readonly answer: string };

/** Possible effects of earlier requests of the key that were given up or lost. */
export interface EarlierRequest {
  /** A request may have claimed this instance, or may still claim it. */
  readonly instance?: InstanceId;
  /** A request was sent to this location, or was about to be: see `placeRequest`. */
  readonly place?: string;
  /**
   * Requests were lost recently, so one of this key may have claimed an instance that mirrors don't
   * show yet.
   */
  readonly isUnsure?: true;
}

/** Longest answer that is kept, in characters. */
export const MAX_KEPT_ANSWER = 65_536;

/** Bytes that an answer counts beside its text, for its index. */
export const KEPT_ANSWER_OVERHEAD = 256;

export interface Requests {
  /**
   * Opens a request under an Idempotency-Key. `new`: the caller must carry it out, and the request
   * stays in flight until it is answered or given up. A request of a dead replica becomes new
   * again. `reused`: the key has another body, whether in flight, answered or placed.
   */
  openRequest(mark: RequestFingerprint, owner: RequestOwner): Promise<OpenedRequest>;
  /**
   * Returns whether this replica still owns a request that it opened, and extends the ownership by
   * some seconds. False: another replica may own it now. Rejects if the store is unreachable.
   */
  confirmRequest(mark: RequestFingerprint): Promise<boolean>;
  /**
   * Records the destination of a request in flight before the request is sent there, for the next
   * opener. A place is a short text; undefined means that it was not sent and never will be. A
   * place is durable when the call resolves, and is kept for `ttlMs`. Resolves with false and
   * records nothing if another replica owns the request: it must not be sent.
   */
  placeRequest(
    mark: RequestFingerprint,
    owner: RequestOwner,
    place: string | undefined,
  ): Promise<boolean>;
  /**
   * Ends a request in flight and keeps its answer for `ttlMs` from now: a text without NUL of at
   * most MAX_KEPT_ANSWER. Durable when it resolves, and ordered before any later write of this
   * replica. Beyond a tenant's bytes, evicts its oldest answers early; beyond the bytes of all, the
   * oldest of the largest tenant. Idempotent. Resolves with false if the answer was not kept: it is
   * too long, or another replica owns the request, and its answer stands.
   */
  keepAnswer(mark: RequestFingerprint, owner: RequestOwner, answer: string): Promise<boolean>;
  /**
   * Ends a request in flight without an answer. A repeated request is carried out again. Its opener
   * receives the place, and the instance that was admitted for a claim under it. Idempotent.
   */
  giveUpRequest(mark: RequestFingerprint, owner: RequestOwner): Promise<void>;
}
