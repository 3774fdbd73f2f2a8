import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Context } from '../reply/context.ts';

/** How much is read on of a body that nobody wants any more, and for how long. */
const LINGER_BYTES = 8 << 20;
const LINGER_MS = 10_000;

/** Has a refusal in the middle of a body reach its client. */
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
 * Has a connection whose request was not read to its end close once its client had a chance to see
 * the answer, also one that only writes first: it is read on, and what comes is dropped, up to 8
 * MiB or 10 s. To be called before the answer is given.
 */
export const lingerAfter = (request: IncomingMessage, response: ServerResponse): void => {
  if (request.complete || request.destroyed) return;
  response.shouldKeepAlive = false;
  // Of what nobody has begun to read, Node would drop all itself, and tell of none.
  if (request.readableFlowing === null) request.read();
  const socket: Socket = request.socket;
  // Node calls it once the answer is out, and would reset the connection under the client's hands.
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
