import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { randomUUID } from 'node:crypto';
import type { ErrorAnswer } from './error-table.ts';

/**
 * Answers on a bare socket, where there is no response object: bytes that are no request, and upgrades refused. The
 * connection ends with it.
 */
export const endWithError = (socket: Duplex, { status, headers, body }: ErrorAnswer, requestId: string = randomUUID()): void => {
  if (!socket.writable) return void socket.destroy();
  const text = JSON.stringify(body);
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `X-Request-Id: ${requestId}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(text)}`,
    'Connection: close',
  ];
  socket.end(`${lines.join('\r\n')}\r\n\r\n${text}`, () => socket.destroy());
};
