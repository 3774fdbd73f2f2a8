import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { unavailable } from '../../model/refusals.ts';
import type { Context } from '../server/context.ts';
import { unhurried } from '../server/unhurried.ts';
import { awaitsContinue, checkEncoding, ClientGone } from './request-body.ts';

/** A client that sends nothing for so long, though it was waited for, is given up. */
const STALL_MS = 60_000;
const LOOKS = 4;

/**
 * The body of a request as it comes, of any length. Nothing of it is asked for before it is read.
 * To destroy it leaves the connection alone, so that an answer can still be given. Refuses what is
 * encoded.
 */
export const streamedBody = (request: IncomingMessage, response: ServerResponse): Readable => {
  checkEncoding(request);
  return arrivingBytes(request, response);
};

/** Returns the body likewise, encoded as it may be. */
export const arrivingBytes = (request: IncomingMessage, response: ServerResponse): Readable => {
  const { socket } = request;
  unhurried.add(socket);
  let begun = false;
  let read = -1;
  let silent = 0;
  let timer: NodeJS.Timeout | undefined;
  const onData = (chunk: Buffer): void => {
    if (!content.push(chunk)) request.pause();
  };
  const onEnd = (): void => {
    leave();
    content.push(null);
  };
  const onGone = (): void => {
    content.destroy(new ClientGone('the body was cut'));
  };
  const leave = (): void => {
    clearInterval(timer);
    unhurried.delete(socket);
    request.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
  };
  const look = (): void => {
    silent = !request.isPaused() && socket.bytesRead === read ? silent + 1 : 0;
    read = socket.bytesRead;
    if (silent < LOOKS) return;
    content.destroy(unavailable('the body does not arrive; try again'));
  };
  const content = new Readable({
    highWaterMark: 256 * 1024,
    read: () => {
      if (!begun) {
        // Its events are over: nothing would ever end the wait for it.
        if (request.destroyed) return onGone();
        begun = true;
        if (awaitsContinue.has(request)) response.writeContinue();
        timer = setInterval(look, STALL_MS / LOOKS).unref();
        request.on('data', onData).once('end', onEnd).once('error', onGone).once('close', onGone);
      }
      request.resume();
    },
    destroy: (error, callback) => {
      leave();
      if (!request.complete) request.pause();
      callback(error);
    },
  });
  content.on('error', () => {});
  return content;
};

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
 * the answer: it is read on, and what comes is dropped, up to 8 MiB or 10 s.
 */
const lingerAfter = (request: IncomingMessage, response: ServerResponse): void => {
  if (request.complete || request.destroyed) return;
  response.shouldKeepAlive = false;
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
