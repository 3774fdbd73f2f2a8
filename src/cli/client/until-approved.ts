import { Readable } from 'node:stream';
import { ApiError } from './api-error.ts';
import type { Exchange } from './http-exchange.ts';

/** A request that waits for approval. */
export interface AwaitedApproval {
  readonly approvalId: string;
  readonly summary: string;
  readonly expiresAt: string;
  /**
   * The cluster of a fleet that decides, at its own address. If absent, the service itself decides.
   */
  readonly clusterID?: string;
}

/** Less than the daemon's maximum of 300, since a proxy may time out earlier. */
const HELD_SECONDS = 60;

/**
 * Sends a request. If the request needs approval, calls `onApproval` once and repeats the identical
 * request. The service holds each request until the decision. Ends if the approval expires or is
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

/**
 * Returns a function that yields the content at each call: the first time from its source, then
 * from the stored copy. Content too long to wait for approval is not stored, since the service
 * refuses it.
 */
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
