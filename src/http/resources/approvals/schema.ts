import { z } from 'zod';
import { APPROVAL_SCOPES, APPROVAL_STATUSES } from '../../../model/approvals/approval.ts';
import { approvalNotFound } from '../../../model/approvals/approval-refusals.ts';
import type { PathParams } from '../../corridor/route.ts';
import { limit, maybe, offset, pageOf, text, timestamp } from '../../corridor/common-schema.ts';

const status = z.enum(APPROVAL_STATUSES);
const scope = z.enum(APPROVAL_SCOPES);

export const ApprovalPath: PathParams<{ approvalId: string }> = {
  schema: z.object({
    approvalId: z.uuid().describe('`approvalId` in the `detail` of the refused request.'),
  }),
  otherwise: approvalNotFound,
};

export const ApprovalListQuery = z.object({
  status: maybe(status).describe('Only approvals with this status.'),
  limit,
  offset,
});

export const DecideApprovalBody = z.object({
  decision: z.enum(['approve', 'deny']),
  scope: maybe(scope).describe(
    '`once`: for one request. `session`: for the same operation with this key and ' +
      '`X-Session-Id`, for at most 8 hours; not possible if `onceOnly` is true. Default: ' +
      '`once`.',
  ),
  reason: maybe(text(1_024)).describe('Shown to the requester.'),
});

const approvalFields = {
  id: z.string(),
  principal: z
    .object({ team: z.string(), user: z.string(), keyId: z.string() })
    .describe('The requester.'),
  sessionId: maybe(z.string()).describe('The `X-Session-Id` of the request.'),
  operation: z.string().describe('operationId of the request.'),
  onceOnly: z.boolean().describe('Whether the request cannot be approved for a whole session.'),
  method: z.string(),
  path: z.string().describe('Normalized path, without `/v1`.'),
  query: maybe(z.string()).describe('Query with sorted parameters.'),
  namespace: z.string().describe('Namespace of the resource in the path.'),
  route: z
    .string()
    .describe(
      'API (`REST` or `compatible`), method and path pattern of the request. The approval ' +
        'applies only to this route.',
    ),
  ignoredFields: maybe(z.array(z.string())).describe(
    'Fields of the body that the route ignores, at most 16.',
  ),
  headers: z
    .record(z.string(), z.string())
    .describe('Headers that must be the same when the request is repeated.'),
  summary: z.string(),
  createdAt: timestamp,
  expiresAt: timestamp.describe('When the pending approval, or the grant, expires.'),
  status,
  scope: maybe(scope),
  decidedBy: maybe(z.string()).describe('Operator who decided.'),
  decidedAt: maybe(timestamp),
  reason: maybe(z.string()),
};

export const Approval = z.object(approvalFields).meta({ id: 'Approval' });
export const ApprovalPage = pageOf(Approval).meta({ id: 'ApprovalPage' });
export const ApprovalInFull = z
  .object({
    ...approvalFields,
    body: maybe(z.string()).describe(
      'The exact body of the request. Only in operators’ console sessions, and as long as ' +
        'it may be needed.',
    ),
    bodyBase64: maybe(z.string()).describe('The body in base64, if it is not UTF-8 text.'),
  })
  .meta({ id: 'ApprovalInFull' });
