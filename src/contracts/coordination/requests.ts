import type { InstanceId } from '../../model/identifiers.ts';
import type { RequestFingerprint } from '../../model/request-fingerprint.ts';
import type { Tenant } from '../../model/tenant.ts';

/** For how long from now a tenant's request is kept. */
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

export interface EarlierRequest {
  /** A request may have claimed this instance, or may still claim it. */
  readonly instance?: InstanceId;
  /** A request was sent here, or was about to be: see `placeRequest`. */
  readonly place?: string;
  /**
   * Requests were lost recently, so one of this key may have claimed an instance that mirrors don't
   * show yet.
   */
  readonly isUnsure?: true;
}

/** In characters. */
export const MAX_KEPT_ANSWER = 65_536;

export const KEPT_ANSWER_OVERHEAD = 256;

export interface Requests {
  /**
   * `new`: the caller must carry it out, and the request stays in flight until it is answered or
   * given up. A request of a dead replica becomes new again. `reused`: the key has another body.
   */
  openRequest(mark: RequestFingerprint, owner: RequestOwner): Promise<OpenedRequest>;
  /**
   * True extends the ownership by some seconds. False: another replica may own the request now.
   * Rejects if the store is unreachable.
   */
  confirmRequest(mark: RequestFingerprint): Promise<boolean>;
  /**
   * Records the destination before the request is sent there, for the next opener; undefined means
   * that it was not sent and never will be. Durable when the call resolves, and kept for `ttlMs`.
   * False if another replica owns the request: it must not be sent.
   */
  placeRequest(
    mark: RequestFingerprint,
    owner: RequestOwner,
    place: string | undefined,
  ): Promise<boolean>;
  /**
   * Keeps the answer for `ttlMs` from now: a text without NUL of at most MAX_KEPT_ANSWER. Durable
   * when it resolves, and ordered before any later write of this replica. Evicts a tenant's oldest
   * answers beyond its bytes, and the largest tenant's beyond the bytes of all. Idempotent. False
   * if the answer is too long, or another replica owns the request.
   */
  keepAnswer(mark: RequestFingerprint, owner: RequestOwner, answer: string): Promise<boolean>;
  /**
   * A repeated request is carried out again; its opener receives the place, and the instance that
   * was admitted for a claim under it. Idempotent.
   */
  giveUpRequest(mark: RequestFingerprint, owner: RequestOwner): Promise<void>;
}
