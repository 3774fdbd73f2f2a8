import { WebSocket } from 'ws';
import {
  channelName,
  messageChannel,
  MOST_MESSAGE_BYTES,
  type LinkChannel,
} from './link-channel.ts';

export interface MessageDial {
  readonly withinMs: number;
  /** `name` says which TLS connection it is. */
  readonly opened: (channel: LinkChannel, name: string) => void;
  readonly failed: (why: string) => void;
}

/**
 * Dials a manager by a WebSocket of many messages; one of both is called, once. Returns the way to
 * stop.
 */
export const dialMessages = (url: URL, { withinMs, opened, failed }: MessageDial): (() => void) => {
  const socket = new WebSocket(url, {
    perMessageDeflate: false,
    // what is masked with zeros stays as it is: no page of a browser speaks over a link
    generateMask: (mask) => mask.fill(0),
    maxPayload: MOST_MESSAGE_BYTES,
    handshakeTimeout: withinMs,
    followRedirects: false,
  });
  let failure = 'the connection ended';
  let name = '';
  socket.on('error', ({ message }) => {
    failure = message;
  });
  const closed = (): void => failed(failure);
  socket.once('close', closed);
  socket.once('upgrade', (answer) => {
    name = channelName(answer.socket);
  });
  socket.once('open', () => {
    socket.off('close', closed);
    opened(messageChannel(socket), name);
  });
  return () => socket.terminate();
};
