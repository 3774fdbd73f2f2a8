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
}

/** Longer than a daemon lets a request hold the line. */
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
  const { approvalId, summary, expiresAt } = error.detail ?? {};
  return typeof approvalId === 'string'
    ? { approvalId, summary: String(summary), expiresAt: String(expiresAt) }
    : undefined;
};
