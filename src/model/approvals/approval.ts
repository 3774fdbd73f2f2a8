import type { Revision } from '../identifiers.ts';
import type { Role, Tenant } from '../tenant.ts';

export const APPROVAL_STATUSES = ['pending', 'approved', 'denied', 'expired', 'consumed'] as const;
export type ApprovalStatus = (typeof APPROVAL_STATUSES)[number];

export const APPROVAL_SCOPES = ['once', 'session'] as const;
/** Says what a grant is good for: one effect, or an operation in one session of one key. */
export type ApprovalScope = (typeof APPROVAL_SCOPES)[number];

/** A request that a person decides on, and what became of it. Times in ms. */
export interface ApprovalRecord {
  readonly id: string;
  readonly revision: Revision;
  readonly principal: ApprovalPrincipal;
  /** The X-Session-Id of the request. */
  readonly sessionId?: string;
  /** The operation that the request comes to, by its operationId. */
  readonly operation: string;
  /** It is never granted for a session. */
  readonly onceOnly: boolean;
  readonly method: string;
  /** The path in its one normal form, without `/v1`. */
  readonly path: string;
  /** The namespace of what the path names. */
  readonly namespace: string;
  /** Sorted, as text; empty where there is none. */
  readonly query: string;
  /**
   * API, method and path pattern that the request came to, such as `compatible POST
   * /sandboxes/{sandboxId}/pause`: a grant is good for that alone.
   */
  readonly route: string;
  /** Names of fields of the body that the route ignores; 16 at most. */
  readonly ignored?: readonly string[];
  /** The headers that the request is bound to, by their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly summary: string;
  /** Hash of all that a repetition must share with the request. */
  readonly binding: string;
  /** The body, sealed; gone once nobody may need it any more. */
  readonly content?: string;
  readonly createdAt: number;
  /** When a pending one, or a grant, ends. */
  readonly expiresAt: number;
  readonly status: ApprovalStatus;
  readonly scope?: ApprovalScope;
  /** The operator. */
  readonly decidedBy?: string;
  readonly decidedAt?: number;
  /** Given by who decided. */
  readonly reason?: string;
  readonly use?: GrantUse;
}

/** Who asked. */
export interface ApprovalPrincipal extends Tenant {
  readonly keyId: string;
  readonly role: Role;
  /** The users of the key and of the keys that it was made by: none of them decides. */
  readonly persons: readonly string[];
}

/** How a grant for one effect was used. */
export interface GrantUse {
  /** When the first one set out to, or when the answer was there. */
  readonly at: number;
  /** Counts those who set out to bring the effect about, one after another. */
  readonly attempt: number;
  /** It is known what came of it, or it is never tried again. */
  readonly settled: boolean;
}

/** Whether the approval still bears on requests: nothing that is over does. */
export const isOpen = ({ status, use }: Pick<ApprovalRecord, 'status' | 'use'>): boolean =>
  status === 'pending' ||
  status === 'approved' ||
  (status === 'consumed' && use?.settled === false);
