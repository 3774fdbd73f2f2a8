import { Readable } from 'node:stream';
import { ApiError } from './api-error.ts';
import type { Exchange } from './http-exchange.ts';

/** A request that waits for a person. */
export interface AwaitedApproval {
  readonly approvalId: string;
  readonly summary: string;
  readonly expiresAt: string;
  /** The cluster of a fleet that decides, at its own address; absent: the service itself. */
  readonly clusterID?: string;
}

/** Less than the 300 that a daemon allows: a proxy may give up before. */
const HELD_SECONDS = 60;

/**
 * Sends a request. If a person must approve it first, calls `onApproval` once, and repeats the
 * identical request, which the service holds until it is decided; until the approval has expired or
 * was denied.
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

/** A longer body can't wait for a person. */
const MOST_KEPT_BYTES = 262_144;

/**
 * Returns the content each time that it is called: first as it comes, then the copy that it kept.
 * The service refuses content that is too long to wait for a person, so no copy is kept of that.
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
