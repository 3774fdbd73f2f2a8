import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { checkDocumented } from './documented-answers.ts';
import { parsedBody, parseRaw } from './http-client.ts';

/**
 * Checks every answer of a server against the document, whoever asked. The returned function throws
 * what did not fit.
 */
export const watchAnswers = (server: Server): (() => void) => {
  const faults: unknown[] = [];
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    // the server may rewrite it
    const { method = '', url: target = '' } = request;
    const parts: Buffer[] = [];
    const { end, write } = response;
    const heard =
      (call: typeof end | typeof write) =>
      (...given: readonly unknown[]) => {
        const [body] = given;
        if (typeof body === 'string' || body instanceof Uint8Array) parts.push(Buffer.from(body));
        return Reflect.apply(call, response, given) as unknown;
      };
    Object.assign(response, { end: heard(end), write: heard(write) });
    response.once('finish', () => {
      // getHeaders lacks those given to writeHead
      const { headers } = parseRaw(String(Reflect.get(response, '_header')));
      const isStream = headers['content-type']?.startsWith('text/event-stream') === true;
      const text = isStream ? '' : Buffer.concat(parts).toString();
      const answer = {
        status: response.statusCode,
        headers,
        text: method === 'HEAD' ? '' : text,
        json: parsedBody(text),
      };
      try {
        checkDocumented(method, target, answer);
      } catch (error) {
        faults.push(error);
      }
    });
  });
  return () => {
    if (faults.length > 0) throw new AggregateError(faults, faults.map(String).join('\n'));
  };
};
