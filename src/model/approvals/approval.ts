import type { Revision } from '../identifiers.ts';
import type { Role, Tenant } from '../tenant.ts';

export const APPROVAL_STATUSES = ['pending', 'approved', 'denied', 'expired', 'consumed'] as const;
export type ApprovalStatus = (typeof APPROVAL_STATUSES)[number];

export const APPROVAL_SCOPES = ['once', 'session'] as const;
/** One effect, or an operation in one session of one key. */
export type ApprovalScope = (typeof APPROVAL_SCOPES)[number];

/** Times in ms. */
export interface ApprovalRecord {
  readonly id: string;
  readonly revision: Revision;
  readonly principal: ApprovalPrincipal;
  readonly sessionId?: string;
  readonly operation: string;
  /** Never granted for a session. */
  readonly onceOnly: boolean;
  readonly method: string;
  readonly path: string;
  readonly namespace: string;
  readonly query: string;
  /**
   * Such as `compatible POST /sandboxes/{sandboxId}/pause`. The grant applies only to this route.
   */
  readonly route: string;
  /** At most 16. */
  readonly ignored?: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly summary: string;
  /** Hash of everything that a repeat must share with the request. */
  readonly binding: string;
  /** Sealed body; deleted when it is no longer needed. */
  readonly content?: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly status: ApprovalStatus;
  readonly scope?: ApprovalScope;
  readonly decidedBy?: string;
  readonly decidedAt?: number;
  readonly reason?: string;
  readonly use?: GrantUse;
}

export interface ApprovalPrincipal extends Tenant {
  readonly keyId: string;
  readonly role: Role;
  /** Users of the key and of its chain of makers; none of them may decide. */
  readonly persons: readonly string[];
}

export interface GrantUse {
  /** Start of the first attempt, or time of the answer. */
  readonly at: number;
  readonly attempt: number;
  /** The outcome is known, or nobody will attempt it again. */
  readonly settled: boolean;
}

export const isOpen = ({ status, use }: Pick<ApprovalRecord, 'status' | 'use'>): boolean =>
  status === 'pending' ||
  status === 'approved' ||
  (status === 'consumed' && use?.settled === false);
