import { Readable } from 'node:stream';
import { ApiError } from './api-error.ts';

interface Sent {
  readonly path: string;
  readonly deadlineMs: number;
}

/** A request that waits for a person, as the service told. */
export interface AwaitedApproval {
  readonly approvalId: string;
  readonly summary: string;
  readonly expiresAt: string;
  /** The cluster of a fleet that decides, at its own address; absent: the service itself does. */
  readonly clusterID?: string;
}

/** Is less than the 300 that a daemon allows: what lies between may give up before. */
const HELD_SECONDS = 60;

/**
 * Sends a request and, where a person must approve it first, the identical one again, which holds
 * the line until it is decided; until the approval has expired or was denied. `told` hears of it
 * once.
 */
export const untilApproved = async <E extends Sent, T>(
  exchange: E,
  send: (exchange: E) => Promise<T>,
  told: (approval: AwaitedApproval) => void,
): Promise<T> => {
  let awaited: AwaitedApproval | undefined;
  for (;;) {
    try {
      return await send(awaited ? holding(exchange) : exchange);
    } catch (error) {
      const approval = approvalOf(error);
      if (!approval || (awaited && awaited.approvalId !== approval.approvalId)) throw error;
      if (!awaited) told(approval);
      awaited = approval;
    }
  }
};

const holding = <E extends Sent>(exchange: E): E => ({
  ...exchange,
  path:
    `${exchange.path}${exchange.path.includes('?') ? '&' : '?'}` +
    `waitApprovalSeconds=${HELD_SECONDS}`,
  deadlineMs: exchange.deadlineMs + HELD_SECONDS * 1_000,
});

const approvalOf = (error: unknown): AwaitedApproval | undefined => {
  if (!(error instanceof ApiError) || error.errorCode !== 'APPROVAL_REQUIRED') return undefined;
  const { approvalId, summary, expiresAt, clusterID } = error.detail ?? {};
  return typeof approvalId === 'string'
    ? {
        ...{ approvalId, summary: String(summary), expiresAt: String(expiresAt) },
        ...(typeof clusterID === 'string' ? { clusterID } : {}),
      }
    : undefined;
};

/** No longer body waits for a person. */
const MOST_KEPT_BYTES = 262_144;

/**
 * Returns the content each time that it is called: first as it comes, then what was kept of it.
 * What is too long to wait for a person is refused the first time, and not kept.
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
