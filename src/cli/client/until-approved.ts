import { Readable } from 'node:stream';
import { ApiError } from './api-error.ts';
import type { Exchange } from './http-exchange.ts';

export interface AwaitedApproval {
  readonly approvalId: string;
  readonly summary: string;
  readonly expiresAt: string;
  /** Decides at its own address; absent for the service itself. */
  readonly clusterID?: string;
}

/** A proxy may time out before the daemon's maximum of 300. */
const HELD_SECONDS = 60;

/**
 * Calls `onApproval` once and repeats the identical request. Ends if the approval expires or is
 * denied.
 */
export const untilApproved = async <T>(
  exchange: Exchange,
  send: (exchange: Exchange) => Promise<T>,
  onApproval: (approval: AwaitedApproval) => void,
): Promise<T> => {
  let awaited: AwaitedApproval | undefined;
  for (;;) {
    try {
      return await send(awaited ? holding(exchange) : exchange);
    } catch (error) {
      const approval = approvalOf(error);
      if (!approval || (awaited && awaited.approvalId !== approval.approvalId)) throw error;
      if (!awaited) onApproval(approval);
      awaited = approval;
    }
  }
};

const holding = ({ path, deadlineMs, ...exchange }: Exchange): Exchange => ({
  ...exchange,
  path: `${path}${path.includes('?') ? '&' : '?'}waitApprovalSeconds=${HELD_SECONDS}`,
  deadlineMs: deadlineMs + HELD_SECONDS * 1_000,
});

const approvalOf = (error: unknown): AwaitedApproval | undefined => {
  if (!(error instanceof ApiError) || error.errorCode !== 'APPROVAL_REQUIRED') return undefined;
  const { approvalId, summary, expiresAt, clusterID } = error.detail ?? {};
  if (typeof approvalId !== 'string') return undefined;
  const known = { approvalId, summary: String(summary), expiresAt: String(expiresAt) };
  return typeof clusterID === 'string' ? { ...known, clusterID } : known;
};

/** Longer bodies cannot wait for approval. */
const MOST_KEPT_BYTES = 262_144;

/** Repeats the content from a copy, unless it is too long to wait for approval. */
export const sentAgain = (content: AsyncIterable<Buffer>): (() => AsyncIterable<Buffer>) => {
  let kept: Buffer[] | undefined;
  let length = 0;
  const first = async function* (): AsyncGenerator<Buffer> {
    kept = [];
    for await (const bytes of content) {
      length += bytes.length;
      if (length > MOST_KEPT_BYTES) kept = [];
      else kept.push(Buffer.from(bytes));
      yield bytes;
    }
  };
  return () => (kept ? Readable.from(kept) : first());
};
