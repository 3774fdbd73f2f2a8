import { z } from 'zod';
import { APPROVAL_SCOPES, APPROVAL_STATUSES } from '../../../model/approvals/approval.ts';
import { approvalNotFound } from '../../../model/approvals/approval-refusals.ts';
import type { PathParams } from '../../corridor/route.ts';
import { limit, maybe, offset, pageOf, text, timestamp } from '../../corridor/common-schema.ts';

const status = z.enum(APPROVAL_STATUSES);
const scope = z.enum(APPROVAL_SCOPES);

export const ApprovalPath: PathParams<{ approvalId: string }> = {
  schema: z.object({ approvalId: z.uuid().describe('The `approvalId` of the refusal.') }),
  otherwise: approvalNotFound,
};

export const ApprovalListQuery = z.object({
  status: maybe(status).describe('Of this status alone.'),
  limit,
  offset,
});

export const DecideApprovalBody = z.object({
  decision: z.enum(['approve', 'deny']),
  scope: maybe(scope).describe(
    '`once`: for one effect. `session`: for the same operation with that key and ' +
      '`X-Session-Id`, for 8 hours at most; not where `onceOnly`. Left out: `once`.',
  ),
  reason: maybe(text(1_024)).describe('For who asked.'),
});

const approvalFields = {
  id: z.string(),
  principal: z
    .object({ team: z.string(), user: z.string(), keyId: z.string() })
    .describe('Who asked.'),
  sessionId: maybe(z.string()).describe('The `X-Session-Id` of the request.'),
  operation: z.string().describe('What the request comes to, by its operationId.'),
  onceOnly: z.boolean().describe('It is never approved for a whole session.'),
  method: z.string(),
  path: z.string().describe('In its one normal form, without `/v1`.'),
  query: maybe(z.string()).describe('Sorted.'),
  namespace: z.string().describe('Of what the path names.'),
  route: z
    .string()
    .describe(
      'The API (`REST` or `compatible`), method and path pattern that the request came to; the ' +
        'approval is for that alone.',
    ),
  ignoredFields: maybe(z.array(z.string())).describe(
    'Fields of the body that the route ignores; 16 at most.',
  ),
  headers: z.record(z.string(), z.string()).describe('Those that a repetition must share.'),
  summary: z.string(),
  createdAt: timestamp,
  expiresAt: timestamp.describe('When the pending one, or the grant, ends.'),
  status,
  scope: maybe(scope),
  decidedBy: maybe(z.string()).describe('The operator.'),
  decidedAt: maybe(timestamp),
  reason: maybe(z.string()),
};

export const Approval = z.object(approvalFields).meta({ id: 'Approval' });
export const ApprovalPage = pageOf(Approval).meta({ id: 'ApprovalPage' });
export const ApprovalInFull = z
  .object({
    ...approvalFields,
    body: maybe(z.string()).describe(
      'What was sent, exactly; to operators’ console sessions alone, and while it may still be ' +
        'needed.',
    ),
    bodyBase64: maybe(z.string()).describe('The same, where it is no UTF-8 text.'),
  })
  .meta({ id: 'ApprovalInFull' });
