import type { IncomingMessage, ServerResponse } from 'node:http';
import { unavailable } from '../../model/refusals.ts';
import { errorAnswer } from '../reply/error-table.ts';
import { requestIdFrom } from './request-head.ts';

/** Serialized once, so that a refusal is cheap. */
export interface PreparedAnswer {
  readonly status: number;
  readonly headers: readonly string[];
  readonly text: string;
}

export const prepared = (refusal: Error): PreparedAnswer => {
  const { status, headers, body } = errorAnswer(refusal, '');
  const text = JSON.stringify(body);
  return {
    status,
    text,
    headers: [
      ...Object.entries(headers).flat(),
      'Content-Type',
      'application/json; charset=utf-8',
      'Content-Length',
      String(Buffer.byteLength(text)),
    ],
  };
};

export const turnAway = (
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers, text }: PreparedAnswer,
): void => {
  response.writeHead(status, [
    ...headers,
    'X-Request-Id',
    requestIdFrom(request.headers['x-request-id']),
  ]);
  response.end(request.method === 'HEAD' ? undefined : text);
};

const cut = new WeakSet<ServerResponse>();

/** The daemon stops: answers 503 if no answer has started, and closes the connection. */
export const cutShort = (request: IncomingMessage, response: ServerResponse): void => {
  cut.add(response);
  if (response.headersSent) return void response.destroy();
  response.shouldKeepAlive = false;
  const { status, headers, text } = STOPPED;
  const id = response.getHeader('X-Request-Id') ?? requestIdFrom(request.headers['x-request-id']);
  response.writeHead(status, [...headers, 'X-Request-Id', String(id)]);
  response.end(request.method === 'HEAD' ? undefined : text);
};

export const wasCutShort = (response: ServerResponse): boolean => cut.has(response);

const STOPPED = prepared(
  unavailable(
    'the daemon is stopping, and the outcome is unknown; check the result before you repeat ' +
      'the request',
  ),
);
