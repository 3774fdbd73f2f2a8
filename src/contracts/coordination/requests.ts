import type { InstanceId } from '../../model/identifiers.ts';
import type { RequestFingerprint } from '../../model/request-fingerprint.ts';
import type { Tenant } from '../../model/tenant.ts';

/** For whom a request under an Idempotency-Key is kept, and for how long from now. */
export interface RequestOwner {
  readonly tenant: Tenant;
  readonly ttlMs: number;
  /** A manager made its key: it is kept apart from clients' requests, and pushes none out. */
  readonly isOfManager?: true;
}

export type OpenedRequest =
  /**
   * `instance`: an earlier one of the key was given up, or its replica is gone; it may have claimed
   * this instance, or may yet.
   * `isUnsure`: requests were lost a moment ago, so that an earlier one of the key may have claimed
   * what no mirror shows yet.
   */
  | { readonly kind: 'new'; readonly instance?: InstanceId; readonly isUnsure?: true }
  | { readonly kind: 'in-flight' | 'reused' }
  | { readonly kind: 'answered'; readonly answer: string };

/** `none`: it is nobody's. */
export type PeekedRequest =
  | { readonly kind: 'none' }
  | Exclude<OpenedRequest, { readonly kind: 'new' }>;

/** The longest answer that is kept, in characters. */
export const MAX_KEPT_ANSWER = 65_536;

/** Bytes that an answer counts beside its text: what is kept to find it. */
export const KEPT_ANSWER_OVERHEAD = 256;

export interface Requests {
  /**
   * Opens a request under an Idempotency-Key. `new`: it is the caller's to carry out, and stays in
   * flight until it is answered or given up; a request whose replica died is nobody's and new
   * again. `reused`: the key has another body.
   */
  openRequest(mark: RequestFingerprint, owner: RequestOwner): Promise<OpenedRequest>;
  /** Tells how a request under an Idempotency-Key stands, and leaves it as it is. */
  peekRequest(mark: RequestFingerprint, owner: RequestOwner): Promise<PeekedRequest>;
  /**
   * Tells whether a request that was opened here still is this replica's, and keeps it so for some
   * seconds more. False: it may be another replica's by now. Rejects where that can't be told.
   */
  confirmRequest(mark: RequestFingerprint): Promise<boolean>;
  /**
   * Ends a request that is in flight and keeps its answer, a text without NUL of at most
   * MAX_KEPT_ANSWER, for `ttlMs` from now. Durable when it resolves, and before any write of this
   * replica that comes later. Past the bytes that a tenant may have its oldest answers are
   * forgotten early, past those of all the oldest of the tenant that has most. May be repeated.
   * Resolves with false where it was not kept: it is too long, or the request is another replica's
   * by now, whose answer stands or is to come.
   */
  keepAnswer(mark: RequestFingerprint, owner: RequestOwner, answer: string): Promise<boolean>;
  /**
   * Ends a request that is in flight without an answer: its repetition is carried out anew, and is
   * told of the instance that was admitted to be claimed under it. May be repeated.
   */
  giveUpRequest(mark: RequestFingerprint, owner: RequestOwner): Promise<void>;
}
