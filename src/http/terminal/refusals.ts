import type { Duplex } from 'node:stream';
import type { Clock } from '../../contracts/clock.ts';
import { invalidToken, Refusal, type RefusalCode, unavailable } from '../../model/refusals.ts';
import { errorAnswer } from '../reply/error-table.ts';
import { rawAnswer } from '../corridor/raw-answer.ts';

export const unknownPath = (): Refusal =>
  new Refusal('NOT_FOUND', 'nothing to upgrade at this path');
export const unknownCluster = (): Refusal => new Refusal('CLUSTER_NOT_FOUND', 'cluster not found');
export const foreignOrigin = (): Refusal =>
  new Refusal('FORBIDDEN', 'terminals are not open to pages of this origin');
export const badHandshake = (problem: string): Refusal => new Refusal('INVALID_ARGUMENT', problem);
export const draining = (): Refusal => unavailable('the daemon is stopping or busy');

/** All get the same answer, so that a caller learns nothing from it. */
const TOKEN_FAULTS: ReadonlySet<RefusalCode> = new Set([
  'INVALID_TOKEN',
  'API_KEY_REQUIRED',
  'INVALID_API_KEY',
  'ADMIN_REQUIRED',
  'FORBIDDEN',
  'NOT_FOUND',
  'SANDBOX_NOT_FOUND',
]);

export const openingFailure = (error: unknown): unknown =>
  error instanceof Refusal && TOKEN_FAULTS.has(error.code) ? invalidToken() : error;

/** Closes the socket when the client does, or after two seconds. */
export const refuseUpgrade = (
  socket: Duplex,
  error: unknown,
  context: { readonly requestId: string; readonly clock: Clock },
): void => {
  if (socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  const answer = errorAnswer(error, context.requestId);
  const callOff = context.clock.at(context.clock.now() + LINGER_MS, () => socket.destroy());
  socket.once('close', callOff);
  socket.once('end', () => socket.destroy());
  socket.end(
    rawAnswer(
      { ...answer, headers: { 'Cache-Control': 'no-store', ...answer.headers } },
      context.requestId,
    ),
  );
  socket.resume(); // or unread input would reset the connection and lose the answer
};

const LINGER_MS = 2_000;
