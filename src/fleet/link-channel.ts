import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { createWebSocketStream, type WebSocket } from 'ws';

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

/**
 * Makes a WebSocket the byte stream that HTTP/2 runs on. It reads on only while what came is taken,
 * and takes only what the socket has sent.
 */
export const channelOf = (socket: WebSocket): Duplex => {
  const channel = createWebSocketStream(socket, {
    readableHighWaterMark: BUFFERED_BYTES,
    writableHighWaterMark: BUFFERED_BYTES,
  });
  channel.on('error', () => socket.terminate());
  return channel;
};
