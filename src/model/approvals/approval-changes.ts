import type { ApprovalRecord, ApprovalScope } from './approval.ts';

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

/** True even if the record does not show it yet. */
export const isExpired = ({ status, expiresAt }: ApprovalRecord, now: number): boolean =>
  (status === 'pending' || status === 'approved') && now >= expiresAt;

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

/** A grant may be taken over if its user is gone. `settled`: never attempted again. */
export const used = (record: ApprovalRecord, now: number, settled: boolean): Change => ({
  ...(settled ? withoutContent(record) : record),
  status: 'consumed',
  use: { at: record.use?.at ?? now, attempt: (record.use?.attempt ?? 0) + 1, settled },
});

/**
 * The effect of a grant exists, or nobody will attempt it again. `answeredAt`: from then on the
 * client may miss the answer.
 */
export const settled = (record: ApprovalRecord, answeredAt?: number): Change =>
  record.use
    ? {
        ...withoutContent(record),
        use: { ...record.use, at: answeredAt ?? record.use.at, settled: true },
      }
    : record;

export const givenBack = ({ use: _use, ...record }: ApprovalRecord): Change => ({
  ...record,
  status: 'approved',
});

export const expired = (record: ApprovalRecord): Change => ({
  ...withoutContent(record),
  status: 'expired',
});

const withoutContent = ({ content: _content, ...record }: ApprovalRecord): ApprovalRecord => record;
