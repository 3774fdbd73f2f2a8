import type { Revision } from '../identifiers.ts';
import type { Role, Tenant } from '../tenant.ts';

export const APPROVAL_STATUSES = ['pending', 'approved', 'denied', 'expired', 'consumed'] as const;
export type ApprovalStatus = (typeof APPROVAL_STATUSES)[number];

export const APPROVAL_SCOPES = ['once', 'session'] as const;
/** Scope of a grant: one effect, or an operation in one session of one key. */
export type ApprovalScope = (typeof APPROVAL_SCOPES)[number];

/** A request for approval and its outcome. Times in ms. */
export interface ApprovalRecord {
  readonly id: string;
  readonly revision: Revision;
  readonly principal: ApprovalPrincipal;
  /** The X-Session-Id of the request. */
  readonly sessionId?: string;
  /** The requested operation, by its operationId. */
  readonly operation: string;
  /** Never granted for a session. */
  readonly onceOnly: boolean;
  readonly method: string;
  /** The path in its normal form, without `/v1`. */
  readonly path: string;
  /** Namespace of the object in the path. */
  readonly namespace: string;
  /** Sorted, as text; empty if there is no query. */
  readonly query: string;
  /**
   * API, method and path pattern of the request, such as `compatible POST
   * /sandboxes/{sandboxId}/pause`. The grant applies only to this route.
   */
  readonly route: string;
  /** Names of body fields that the route ignores; at most 16. */
  readonly ignored?: readonly string[];
  /** Headers to which the approval is bound, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly summary: string;
  /** Hash of everything that a repeat must share with the request. */
  readonly binding: string;
  /** Sealed body; deleted when it is no longer needed. */
  readonly content?: string;
  readonly createdAt: number;
  /** Expiry of a pending approval or a grant. */
  readonly expiresAt: number;
  readonly status: ApprovalStatus;
  readonly scope?: ApprovalScope;
  /** The operator. */
  readonly decidedBy?: string;
  readonly decidedAt?: number;
  /** Given by the operator. */
  readonly reason?: string;
  readonly use?: GrantUse;
}

/** The requester. */
export interface ApprovalPrincipal extends Tenant {
  readonly keyId: string;
  readonly role: Role;
  /** Users of the key and of its chain of makers; none of them may decide. */
  readonly persons: readonly string[];
}

/** Use of a grant for one effect. */
export interface GrantUse {
  /** Start of the first attempt, or time of the answer. */
  readonly at: number;
  /** Number of attempts at the effect, one after another. */
  readonly attempt: number;
  /** The outcome is known, or nobody will attempt it again. */
  readonly settled: boolean;
}

/** Whether the approval still applies to requests; a finished approval does not. */
export const isOpen = ({ status, use }: Pick<ApprovalRecord, 'status' | 'use'>): boolean =>
  status === 'pending' ||
  status === 'approved' ||
  (status === 'consumed' && use?.settled === false);
