import { randomUUID } from 'node:crypto';
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ErrorAnswer } from '../reply/error-table.ts';
import { lingerAfter } from './linger.ts';
import { hasBody } from './request-body.ts';

/** For sockets without a response object. Ends the connection. */
export const rawAnswer = ({ status, headers, body }: ErrorAnswer, requestId: string): string => {
  const text = JSON.stringify(body);
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `X-Request-Id: ${requestId}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(text)}`,
    'Connection: close',
  ];
  return `${lines.join('\r\n')}\r\n\r\n${text}`;
};

export const endWithError = (socket: Duplex, answer: ErrorAnswer): void => {
  if (!socket.writable) return void socket.destroy();
  socket.end(rawAnswer(answer, randomUUID()), () => socket.destroy());
};

/** Outside Koa, without waiting for the rest of the body. */
export const giveError = (
  request: IncomingMessage,
  response: ServerResponse,
  {
    answer: { status, headers, body },
    requestId,
  }: {
    readonly answer: Pick<ErrorAnswer, 'status' | 'headers'> & { readonly body: object };
    readonly requestId: string;
  },
): void => {
  const text = JSON.stringify(body);
  if (hasBody(request)) lingerAfter(request, response);
  response.writeHead(status, {
    ...headers,
    'X-Request-Id': requestId,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
  });
  response.end(text);
};
