import { isUtf8 } from 'node:buffer';
import type { z } from 'zod';
import type { ApprovalRecord } from '../../../model/approvals/approval.ts';
import { timestampOf } from '../../corridor/common-schema.ts';
import type { Approval, ApprovalInFull } from './schema.ts';

/** Leaves out what only a daemon needs of it, such as its binding, is not shown. */
export const presentApproval = (record: ApprovalRecord): z.input<typeof Approval> => ({
  id: record.id,
  principal: {
    team: record.principal.team,
    user: record.principal.user,
    keyId: record.principal.keyId,
  },
  ...(record.sessionId === undefined ? {} : { sessionId: record.sessionId }),
  operation: record.operation,
  onceOnly: record.onceOnly,
  method: record.method,
  path: record.path,
  ...(record.query === '' ? {} : { query: record.query }),
  namespace: record.namespace,
  ...(record.route === undefined ? {} : { route: record.route }),
  ...(record.ignored ? { ignoredFields: [...record.ignored] } : {}),
  headers: record.headers,
  summary: record.summary,
  createdAt: timestampOf(record.createdAt),
  expiresAt: timestampOf(record.expiresAt),
  status: record.status,
  ...(record.scope === undefined ? {} : { scope: record.scope }),
  ...(record.decidedBy === undefined ? {} : { decidedBy: record.decidedBy }),
  ...(record.decidedAt === undefined ? {} : { decidedAt: timestampOf(record.decidedAt) }),
  ...(record.reason === undefined ? {} : { reason: record.reason }),
});

export const presentApprovalInFull = (
  record: ApprovalRecord,
  content: Buffer | undefined,
): z.input<typeof ApprovalInFull> => ({
  ...presentApproval(record),
  ...(content === undefined
    ? {}
    : isUtf8(content)
      ? { body: content.toString('utf8') }
      : { bodyBase64: content.toString('base64') }),
});
