import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Context } from '../reply/context.ts';

const LINGER_BYTES = 8 << 20;
const LINGER_MS = 10_000;

/** Lets a refusal in the middle of a body reach its client. */
export const thenLinger = async <T>(
  { req, res }: Pick<Context, 'req' | 'res'>,
  work: () => Promise<T> | T,
): Promise<T> => {
  try {
    return await work();
  } finally {
    lingerAfter(req, res);
  }
};

/**
 * Closes a partly read request only after its client could read the answer: drains up to 8 MiB for
 * up to 10 s. Call it before the answer is sent.
 */
export const lingerAfter = (request: IncomingMessage, response: ServerResponse): void => {
  if (request.complete || request.destroyed) return;
  response.shouldKeepAlive = false;
  // Without a reader, Node would discard the body.
  if (request.readableFlowing === null) request.read();
  const socket: Socket = request.socket;
  // Node calls this after the answer: too early.
  socket.destroySoon = (): void => {
    socket.end();
    let dropped = 0;
    const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
    request
      .on('data', (chunk: Buffer) => {
        dropped += chunk.length;
        if (dropped > LINGER_BYTES) socket.destroy();
      })
      .once('end', () => socket.destroy())
      .on('error', () => {})
      .resume();
    socket.once('close', () => clearTimeout(timer));
  };
};
