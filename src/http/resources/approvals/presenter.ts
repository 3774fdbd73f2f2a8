import { isUtf8 } from 'node:buffer';
import type { z } from 'zod';
import type { ApprovalRecord } from '../../../model/approvals/approval.ts';
import { timestampOf } from '../../corridor/common-schema.ts';
import type { Approval, ApprovalInFull } from './schema.ts';

/** Omits internal fields, such as the binding. */
export const presentApproval = (record: ApprovalRecord): z.input<typeof Approval> => ({
  id: record.id,
  principal: {
    team: record.principal.team,
    user: record.principal.user,
    keyId: record.principal.keyId,
  },
  sessionId: record.sessionId,
  operation: record.operation,
  onceOnly: record.onceOnly,
  method: record.method,
  path: record.path,
  query: record.query || undefined,
  namespace: record.namespace,
  route: record.route,
  ignoredFields: record.ignored ? [...record.ignored] : undefined,
  headers: record.headers,
  summary: record.summary,
  createdAt: timestampOf(record.createdAt),
  expiresAt: timestampOf(record.expiresAt),
  status: record.status,
  scope: record.scope,
  decidedBy: record.decidedBy,
  decidedAt: timestampOf(record.decidedAt),
  reason: record.reason,
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
