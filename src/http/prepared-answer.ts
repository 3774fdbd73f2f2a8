import type { IncomingMessage, ServerResponse } from 'node:http';
import { errorAnswer } from './error-table.ts';
import { requestIdFrom } from './request-id.ts';

/** An error answer but for its request id, made once: for requests on which nothing is to be spent. */
export interface PreparedAnswer { readonly status: number; readonly headers: readonly string[]; readonly text: string }

export const prepared = (refusal: Error): PreparedAnswer => {
  const { status, headers, body } = errorAnswer(refusal, '');
  const text = JSON.stringify(body);
  return { status, text, headers: [...Object.entries(headers).flat(), 'Content-Type', 'application/json; charset=utf-8', 'Content-Length', String(Buffer.byteLength(text))] };
};

export const turnAway = (request: IncomingMessage, response: ServerResponse, { status, headers, text }: PreparedAnswer): void => {
  response.writeHead(status, [...headers, 'X-Request-Id', requestIdFrom(request.headers['x-request-id'])]);
  response.end(request.method === 'HEAD' ? undefined : text);
};
