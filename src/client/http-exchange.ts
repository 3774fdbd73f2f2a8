import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { apiErrorFrom, ConnectionFailed } from './api-error.ts';

export interface Exchange {
  readonly method: string;
  /** From the server's address on, with its query. */
  readonly path: string;
  readonly body?: unknown;
  readonly deadlineMs: number;
  readonly signal?: AbortSignal | undefined;
  /** `application/json` unless told. */
  readonly accept?: string;
  /** The id of the last event that was seen, after which an event stream goes on. */
  readonly lastEventId?: string | undefined;
}

/** The most of an answer that is read, in bytes. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/**
 * JSON over HTTP, one answer a call. Node's own client and not fetch, which gives up on answers
 * that take 300 s, as a command may. Follows no redirect, so the key goes nowhere else.
 */
export class HttpExchanges {
  readonly #server: URL;
  readonly #apiKey: string;
  readonly #agent: HttpAgent | HttpsAgent;
  readonly #warn: (text: string) => void;

  /** `warn` is told of each `Warning` of an answer. */
  constructor(server: URL, apiKey: string, warn: (text: string) => void = () => undefined) {
    this.#server = server;
    this.#apiKey = apiKey;
    this.#warn = warn;
    this.#agent =
      server.protocol === 'https:'
        ? new HttpsAgent({ keepAlive: true })
        : new HttpAgent({ keepAlive: true });
  }

  /**
   * The parsed body of a success. Rejects with ApiError, with ConnectionFailed, or with the
   * signal's reason.
   */
  async call(exchange: Exchange): Promise<unknown> {
    exchange.signal?.throwIfAborted();
    const deadline = AbortSignal.timeout(exchange.deadlineMs);
    const signal = exchange.signal ? AbortSignal.any([exchange.signal, deadline]) : deadline;
    try {
      const response = await this.#send(exchange, signal);
      const text = await readAll(response);
      for (const warning of warningsIn(response.headers.warning)) this.#warn(warning);
      const status = response.statusCode ?? 0;
      if (status < 200 || status > 299) throw apiErrorFrom(status, response.headers, text);
      return parsed(text, this.#server);
    } catch (error) {
      exchange.signal?.throwIfAborted();
      if (deadline.aborted)
        throw new ConnectionFailed(
          `no answer from ${this.#server.origin} within ${exchange.deadlineMs / 1_000} s`,
          'DEADLINE',
        );
      throw asConnectionFailure(error, this.#server);
    }
  }

  /** An answer that goes on: the deadline is for its beginning alone. Rejects as `call` does. */
  async open(exchange: Exchange): Promise<IncomingMessage> {
    exchange.signal?.throwIfAborted();
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), exchange.deadlineMs);
    const signal = exchange.signal
      ? AbortSignal.any([exchange.signal, deadline.signal])
      : deadline.signal;
    try {
      const response = await this.#send(exchange, signal);
      const status = response.statusCode ?? 0;
      if (status < 200 || status > 299)
        throw apiErrorFrom(status, response.headers, await readAll(response));
      return response;
    } catch (error) {
      exchange.signal?.throwIfAborted();
      if (deadline.signal.aborted)
        throw new ConnectionFailed(
          `no answer from ${this.#server.origin} within ${exchange.deadlineMs / 1_000} s`,
          'DEADLINE',
        );
      throw asConnectionFailure(error, this.#server);
    } finally {
      clearTimeout(timer);
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  #send(
    { method, path, body, accept = 'application/json', lastEventId }: Exchange,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const send = this.#server.protocol === 'https:' ? httpsRequest : httpRequest;
    return new Promise((resolve, reject) => {
      const request = send(
        new URL(`${this.#server.href.replace(/\/+$/, '')}${path}`),
        {
          method,
          signal,
          agent: this.#agent,
          headers: {
            accept,
            'SERVICE-API-KEY': this.#apiKey,
            ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
            ...(bytes
              ? { 'content-type': 'application/json', 'content-length': bytes.length }
              : {}),
          },
        },
        resolve,
      );
      request.on('error', reject);
      request.end(bytes);
    });
  }
}

/** A network error as ConnectionFailed; anything else as it is. */
export const asConnectionFailure = (error: unknown, server: URL): Error => {
  if (!(error instanceof Error)) return new Error(String(error));
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  if (code === undefined || error instanceof ConnectionFailed) return error;
  if (code.startsWith('ERR_HTTP_INVALID') || code === 'ERR_INVALID_CHAR')
    return new Error(`there is no API key that can be sent: ${error.message}`);
  return new ConnectionFailed(`no connection to ${server.origin}: ${error.message || code}`, code, {
    cause: error,
  });
};

/** The texts of a `Warning` header: `299 - "text"`, several with commas between. */
const warningsIn = (header = ''): readonly string[] =>
  [...header.matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g)].map(([, text = '']) =>
    text.replaceAll(/\\(.)/g, '$1'),
  );

const readAll = async (response: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_ANSWER_BYTES) throw new Error('the answer is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
};

const parsed = (text: string, server: URL): unknown => {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${server.origin} did not answer JSON; is it a Sandpool daemon?`, {
      cause: error,
    });
  }
};
