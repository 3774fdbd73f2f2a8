import type { ApprovalRecord, ApprovalScope } from './approval.ts';

/** Holds how long things last, in ms. */
export interface ApprovalTerms {
  readonly pendingMs: number;
  readonly grantMs: number;
  readonly sessionMs: number;
}

export interface Decision {
  readonly verdict: 'approve' | 'deny';
  readonly scope: ApprovalScope;
  readonly by: string;
  readonly reason?: string;
}

type Change = ApprovalRecord;

/** Whether its time is over, whatever the record says as yet. */
export const isExpired = ({ status, expiresAt }: ApprovalRecord, now: number): boolean =>
  (status === 'pending' || status === 'approved') && now >= expiresAt;

/** Decides a pending one. */
export const decided = (
  record: ApprovalRecord,
  { verdict, scope, by, reason }: Decision,
  { now, terms }: { readonly now: number; readonly terms: ApprovalTerms },
): Change => ({
  ...(verdict === 'approve' ? record : withoutContent(record)),
  status: verdict === 'approve' ? 'approved' : 'denied',
  decidedBy: by,
  decidedAt: now,
  ...(reason === undefined ? {} : { reason }),
  ...(verdict === 'approve'
    ? { scope, expiresAt: now + (scope === 'session' ? terms.sessionMs : terms.grantMs) }
    : {}),
});

/**
 * Uses a grant for one effect up, or takes over one whose user is gone. `settled`: it is not tried
 * again, whatever comes of it.
 */
export const used = (record: ApprovalRecord, now: number, settled: boolean): Change => ({
  ...(settled ? withoutContent(record) : record),
  status: 'consumed',
  use: { at: record.use?.at ?? now, attempt: (record.use?.attempt ?? 0) + 1, settled },
});

/**
 * Notes that the effect of a grant is there, or is never tried again. `answeredAt`: since when its
 * answer is there to be missed.
 */
export const settled = (record: ApprovalRecord, answeredAt?: number): Change =>
  record.use
    ? {
        ...withoutContent(record),
        use: { ...record.use, at: answeredAt ?? record.use.at, settled: true },
      }
    : record;

/** Gives back a grant whose first attempt was refused and had no effect. */
export const givenBack = ({ use: _use, ...record }: ApprovalRecord): Change => ({
  ...record,
  status: 'approved',
});

/** Ends what nobody decided or used in time. */
export const expired = (record: ApprovalRecord): Change => ({
  ...withoutContent(record),
  status: 'expired',
});

const withoutContent = ({ content: _content, ...record }: ApprovalRecord): ApprovalRecord => record;
