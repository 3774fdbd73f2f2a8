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
  | ({ readonly kind: 'new' } & EarlierRequest)
  | { readonly kind: 'in-flight' | 'reused' }
  | { readonly kind: 'answered'; readonly answer: string };

/** Describes what earlier requests of the key, which were given up or lost, may have done. */
export interface EarlierRequest {
  /** One may have claimed this instance, or may yet. */
  readonly instance?: InstanceId;
  /** One went there, or was about to: see `placeRequest`. */
  readonly place?: string;
  /**
   * Requests were lost a moment ago, so that one of the key may have claimed what no mirror shows
   * yet.
   */
  readonly isUnsure?: true;
}

/** The longest answer that is kept, in characters. */
export const MAX_KEPT_ANSWER = 65_536;

/** Bytes that an answer counts beside its text: what is kept to find it. */
export const KEPT_ANSWER_OVERHEAD = 256;

export interface Requests {
  /**
   * Opens a request under an Idempotency-Key. `new`: it is the caller's to carry out, and stays in
   * flight until it is answered or given up; a request whose replica died is nobody's and new
   * again. `reused`: the key has another body, in flight, answered or placed.
   */
  openRequest(mark: RequestFingerprint, owner: RequestOwner): Promise<OpenedRequest>;
  /**
   * Tells whether a request that was opened here still is this replica's, and keeps it so for some
   * seconds more. False: it may be another replica's by now. Rejects where that can't be told.
   */
  confirmRequest(mark: RequestFingerprint): Promise<boolean>;
  /**
   * Notes where a request that is in flight goes, before it is sent there: whoever opens it next is
   * told. A place is a short text; undefined: it went nowhere, and never will. Durable when it
   * resolves, save that it went nowhere; kept for `ttlMs`. Resolves with false if the request is
   * another replica's by now, and notes nothing: it must not be sent.
   */
  placeRequest(
    mark: RequestFingerprint,
    owner: RequestOwner,
    place: string | undefined,
  ): Promise<boolean>;
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
   * told of its place, and of the instance that was admitted to be claimed under it. May be
   * repeated.
   */
  giveUpRequest(mark: RequestFingerprint, owner: RequestOwner): Promise<void>;
}
