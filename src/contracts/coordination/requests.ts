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
   * `new`: the caller must carry it out, and then answer it or give it up. A request of a dead
   * replica becomes new again. `reused`: the key has another body.
   */
  openRequest(mark: RequestFingerprint, owner: RequestOwner): Promise<OpenedRequest>;
  /**
   * True extends the ownership by some seconds. False: another replica may own the request now.
   * Rejects if the store is unreachable.
   */
  confirmRequest(mark: RequestFingerprint): Promise<boolean>;
  /**
   * Call it before the request is sent there; undefined means that it was not sent and never will
   * be. Durable, and kept for `ttlMs`. False if another replica owns the request: it must not be
   * sent.
   */
  placeRequest(
    mark: RequestFingerprint,
    owner: RequestOwner,
    place: string | undefined,
  ): Promise<boolean>;
  /**
   * A text without NUL of at most MAX_KEPT_ANSWER, kept for `ttlMs`. Durable when it resolves, and
   * ordered before any later write of this replica. Evicts the oldest answers of a tenant, and of
   * the largest tenant, beyond their bytes. Idempotent. False if the answer is too long, or another
   * replica owns the request.
   */
  keepAnswer(mark: RequestFingerprint, owner: RequestOwner, answer: string): Promise<boolean>;
  /**
   * A repetition is carried out again; it receives the place, and the instance that was admitted
   * for a claim. Idempotent.
   */
  giveUpRequest(mark: RequestFingerprint, owner: RequestOwner): Promise<void>;
}
