import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { unavailable } from '../../model/refusals.ts';
import { unhurried } from '../reply/unhurried.ts';
import { awaitsContinue, checkEncoding, ClientGone } from './request-body.ts';

/** Longest pause of a client, in ms, while the daemon reads. */
const STALL_MS = 60_000;
const LOOKS = 4;

/**
 * Requests no data before the first read; destroying it keeps the connection for an answer. Refuses
 * an encoded body.
 */
export const streamedBody = (request: IncomingMessage, response: ServerResponse): Readable => {
  checkEncoding(request);
  return arrivingBytes(request, response);
};

/** Like `streamedBody`, for encoded bodies too. */
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
    content.destroy(new ClientGone('the body ended too early'));
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
    content.destroy(unavailable('no more of the body arrived; try again'));
  };
  const content = new Readable({
    highWaterMark: 256 * 1024,
    read: () => {
      if (!begun) {
        // A closed request emits no more events.
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
