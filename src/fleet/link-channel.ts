import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { createWebSocketStream, type WebSocket } from 'ws';

/** The connection that a link goes over, at either end. */
export interface LinkChannel {
  /** Carries HTTP/2. The link ends with it, and it with the link. */
  readonly stream: Duplex;
  readonly isEndless: boolean;
  /** Bytes that came so far. */
  readonly received: () => number;
  /**
   * Says that the connection is no more, whatever HTTP/2 makes of that: while it writes it reads
   * nothing, and over TLS no version of Node tells it of a write that failed.
   */
  readonly isGone: () => boolean;
}

/** One message of the WebSocket: frames of HTTP/2 are 16 KiB each, and some of them go together. */
export const MOST_MESSAGE_BYTES = 1 << 20;
const BUFFERED_BYTES = 64 * 1024;

/**
 * Names the TLS connection that a link goes over, alike at both of its ends and like no other one
 * (RFC 9266); empty where this end has no TLS. What both sign holds it, so that nobody in the
 * middle can pass it on over connections of theirs.
 */
export const channelName = (connection: Duplex): string =>
  connection instanceof TLSSocket
    ? connection.exportKeyingMaterial(32, 'EXPORTER-Channel-Binding', NO_CONTEXT).toString('base64')
    : '';

const NO_CONTEXT = Buffer.alloc(0);

/** Has HTTP/2 run on a connection on which one message without end goes each way. */
export const endlessChannel = (socket: Socket): LinkChannel => {
  socket.once('end', () => socket.destroy()); // one of an HTTP server stays half open
  return {
    stream: socket,
    isEndless: true,
    received: () => socket.bytesRead,
    isGone: () => hasNoPeer(socket),
  };
};

/** Asks the kernel. (`remoteAddress` would say what it was.) False where Node has no such way. */
const hasNoPeer = (socket: Socket): boolean => {
  const { _handle: handle } = socket as unknown as {
    readonly _handle?: { readonly getpeername?: (address: object) => number } | null;
  };
  return (handle?.getpeername?.({}) ?? 0) !== 0;
};

/** Has it run on a WebSocket with many messages, where an end is of a version before. */
export const messageChannel = (socket: WebSocket): LinkChannel => {
  let bytes = 0;
  socket.on('message', (message: Buffer) => {
    bytes += message.length;
  });
  const stream = channelOf(socket);
  socket.once('close', () => stream.destroy()); // before HTTP/2 writes once more
  return { stream, isEndless: false, received: () => bytes, isGone: () => false };
};

/**
 * Makes a WebSocket the byte stream that HTTP/2 runs on. It reads on only while what came is taken,
 * and takes only what the socket has sent.
 */
const channelOf = (socket: WebSocket): Duplex => {
  const channel = createWebSocketStream(socket, {
    readableHighWaterMark: BUFFERED_BYTES,
    writableHighWaterMark: BUFFERED_BYTES,
  });
  channel.on('error', () => socket.terminate());
  return channel;
};
