import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Clock } from '../contracts/clock.ts';
import { Refusal, type RefusalCode } from '../model/refusals.ts';

/** A "no" to an upgrade, as it goes on the wire. */
export interface UpgradeRefusal {
  readonly status: number;
  readonly errorCode: string;
  readonly error: string;
  readonly detail?: Readonly<Record<string, unknown>>;
  /** Whole seconds. */
  readonly retryAfter?: number;
}

/** One body for every problem with a token, so that nothing can be learned from it. */
export const invalidToken: UpgradeRefusal = { status: 401, errorCode: 'INVALID_TOKEN', error: 'invalid or expired token' };
export const unknownPath: UpgradeRefusal = { status: 404, errorCode: 'NOT_FOUND', error: 'nothing to upgrade at this path' };
export const unknownCluster: UpgradeRefusal = { status: 404, errorCode: 'CLUSTER_NOT_FOUND', error: 'cluster not found' };
export const foreignOrigin: UpgradeRefusal = { status: 403, errorCode: 'FORBIDDEN', error: 'terminals are not open to pages of this origin' };
export const draining: UpgradeRefusal = { status: 503, errorCode: 'UNAVAILABLE', error: 'the daemon is stopping or busy', retryAfter: 1 };
export const internalError: UpgradeRefusal = { status: 500, errorCode: 'INTERNAL', error: 'internal error' };
export const badHandshake = (error: string): UpgradeRefusal => ({ status: 400, errorCode: 'INVALID_ARGUMENT', error });
export const badArgument = (field: string, problem: string): UpgradeRefusal =>
  ({ status: 400, errorCode: 'INVALID_ARGUMENT', error: `${field}: ${problem}`, detail: { field } });

/**
 * What the operation's "no" is on the wire. Whatever is about the token or about what it names is one and the same 401;
 * undefined for what is no Refusal, which is a fault of ours.
 */
export const upgradeRefusalOf = (thrown: unknown): UpgradeRefusal | undefined => {
  if (!(thrown instanceof Refusal)) return undefined;
  const status = SHOWN[thrown.code];
  if (status === undefined) return invalidToken;
  return {
    status, errorCode: thrown.code, error: thrown.message,
    ...(thrown.detail ? { detail: thrown.detail } : {}),
    ...(thrown.retryAfter === undefined ? {} : { retryAfter: thrown.retryAfter }),
  };
};

const SHOWN: Readonly<Partial<Record<RefusalCode, number>>> = {
  SANDBOX_NOT_RUNNING: 409, TOO_MANY_TERMINALS: 429, UNAVAILABLE: 503, INVALID_ARGUMENT: 400, CLUSTER_NOT_FOUND: 404, INTERNAL: 500,
};

/** Answers on a socket that was not upgraded, and closes it: at once when the client has, else after two seconds. */
export const refuseUpgrade = (socket: Duplex, refusal: UpgradeRefusal, context: { readonly requestId: string; readonly clock: Clock }): void => {
  if (socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  const { status, error, errorCode, detail, retryAfter } = refusal;
  const body = JSON.stringify({ error, errorCode, ...(detail ? { detail } : {}) });
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Refused'}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    'Cache-Control: no-store',
    `X-Request-Id: ${context.requestId}`,
  ];
  if (retryAfter !== undefined) lines.push(`Retry-After: ${retryAfter}`);
  const callOff = context.clock.at(context.clock.now() + LINGER_MS, () => socket.destroy());
  socket.once('close', callOff);
  socket.once('end', () => socket.destroy());
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`);
  socket.resume(); // unread input would turn the close into a reset, and the answer would be lost
};

const LINGER_MS = 2_000;
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** The client's own request id where it is fit to be one, else a new one. */
export const upgradeRequestId = (request: IncomingMessage): string => {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID();
};
