import { createHmac } from 'node:crypto';
import type { ApprovalNews } from '../../model/approvals/approval-news.ts';

/** Identical for every receiver and attempt. */
export interface WebhookMessage {
  readonly id: string;
  readonly event: ApprovalNews['event'];
  readonly approvalId: string;
  readonly body: string;
}

export interface WebhookTerms {
  readonly clusterId: string;
  readonly consoleUrl: string | undefined;
  readonly userAgent: string;
}

/** Never contains the request's content. */
export const messageOf = (
  { id, event, at, record }: ApprovalNews,
  { clusterId, consoleUrl }: WebhookTerms,
): WebhookMessage => {
  const { team, user, keyId } = record.principal;
  return {
    id,
    event,
    approvalId: record.id,
    body: JSON.stringify({
      id,
      event,
      time: timestampOf(at),
      clusterId,
      approval: {
        id: record.id,
        principal: { team, user, keyId },
        operation: record.operation,
        method: record.method,
        path: record.path,
        namespace: record.namespace,
        route: record.route,
        summary: record.summary,
        status: record.status,
        createdAt: timestampOf(record.createdAt),
        expiresAt: timestampOf(record.expiresAt),
        scope: record.scope,
        decidedBy: record.decidedBy,
        decidedAt: record.decidedAt === undefined ? undefined : timestampOf(record.decidedAt),
        reason: record.reason,
      },
      url: consoleUrl === undefined ? undefined : `${consoleUrl}/console/approvals/${record.id}`,
    }),
  };
};

/** `at` in ms; the signature is over timestamp and body. */
export const headersOf = (
  { id, event, body }: WebhookMessage,
  {
    secret,
    at,
    userAgent,
  }: { readonly secret: string; readonly at: number } & Pick<WebhookTerms, 'userAgent'>,
): Readonly<Record<string, string>> => {
  const timestamp = String(Math.floor(at / 1_000));
  const signature = createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex');
  return {
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(body)),
    'User-Agent': userAgent,
    'X-Sandpool-Event': event,
    'X-Sandpool-Delivery': id,
    'X-Sandpool-Timestamp': timestamp,
    'X-Sandpool-Signature': `sha256=${signature}`,
  };
};

const timestampOf = (at: number): string => new Date(at).toISOString();
