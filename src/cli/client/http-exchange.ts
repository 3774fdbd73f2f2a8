import {
  Agent as HttpAgent,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as httpRequest,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { Readable } from 'node:stream';
import { ApiError, ConnectionFailed } from './api-error.ts';
import type { OperationRequest } from './operation-request.ts';

export interface Exchange extends OperationRequest {
  readonly deadlineMs: number;
  readonly signal?: AbortSignal;
  readonly accept?: string;
  /** The stream resumes after this event. */
  readonly lastEventId?: string;
}

export interface Upload {
  readonly content: AsyncIterable<Buffer>;
  readonly contentType: string;
}

/** Its owner reads `bytes` or calls `close`. */
export interface Download {
  readonly headers: IncomingHttpHeaders;
  /** Throws ConnectionFailed if the answer is cut off, or pauses for longer than the deadline. */
  readonly bytes: AsyncIterable<Buffer>;
  readonly close: () => void;
}

const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/**
 * `fetch` gives up after 300 s, which a command may need. Follows no redirect, so that the key goes
 * nowhere else. Rejects with ApiError, ConnectionFailed, or the signal's reason.
 */
export class HttpExchanges {
  readonly #server: URL;
  readonly #apiKey: string;
  readonly #agent: HttpAgent | HttpsAgent;
  readonly #warn: (text: string) => void;

  /** `warn` receives each `Warning` header. */
  constructor(server: URL, apiKey: string, warn: (text: string) => void = () => undefined) {
    this.#server = server;
    this.#apiKey = apiKey;
    this.#warn = warn;
    const Agent = server.protocol === 'https:' ? HttpsAgent : HttpAgent;
    this.#agent = new Agent({ keepAlive: true });
  }

  async call(exchange: Exchange): Promise<unknown> {
    return await this.#within(exchange, (response) => this.#parsed(response));
  }

  /** The deadline applies only until the answer begins. */
  async open(exchange: Exchange): Promise<IncomingMessage> {
    return await this.#within(exchange, async (response) => {
      if (!isSuccess(response)) throw await errorOf(response);
      return response;
    });
  }

  /** The deadline applies to each pause. */
  async download(exchange: Exchange): Promise<Download> {
    const response = await this.open(exchange);
    return {
      headers: response.headers,
      bytes: this.#bytesOf(response, exchange),
      close: () => void response.destroy(),
    };
  }

  /**
   * Stops if the answer comes first. The deadline applies to pauses of the service. Also rejects
   * with an error of the content.
   */
  async upload({ content, contentType, ...exchange }: Exchange & Upload): Promise<unknown> {
    exchange.signal?.throwIfAborted();
    const stalled = new AbortController();
    const request = this.#request(exchange, stalled.signal, contentType);
    const answer = responseTo(request);
    const watch = watchSilence(request, exchange.deadlineMs, () => stalled.abort());
    const source = Readable.from(content, { objectMode: false });
    let fault: Error | undefined;
    source.on('error', (error: Error) => {
      fault ??= error;
      request.destroy(error);
    });
    request.once('response', () => void source.unpipe(request));
    source.pipe(request);
    try {
      return await this.#parsed(await answer);
    } catch (error) {
      throw fault ?? this.#failure(error, exchange, stalled.signal);
    } finally {
      clearInterval(watch);
      source.destroy();
      if (!request.writableEnded) request.destroy();
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  async #within<T>(
    exchange: Exchange,
    take: (response: IncomingMessage) => Promise<T>,
  ): Promise<T> {
    exchange.signal?.throwIfAborted();
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), exchange.deadlineMs);
    try {
      return await take(await responseTo(this.#request(exchange, deadline.signal)));
    } catch (error) {
      throw this.#failure(error, exchange, deadline.signal);
    } finally {
      clearTimeout(timer);
    }
  }

  #request(exchange: Exchange, deadline: AbortSignal, streamedType?: string): ClientRequest {
    const { method, path, body, accept = 'application/json', lastEventId, signal } = exchange;
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const send = this.#server.protocol === 'https:' ? httpsRequest : httpRequest;
    const request = send(new URL(`${this.#server.href.replace(/\/+$/, '')}${path}`), {
      method,
      signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
      agent: this.#agent,
      headers: {
        accept,
        'SERVICE-API-KEY': this.#apiKey,
        ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
        ...(bytes ? { 'content-type': 'application/json', 'content-length': bytes.length } : {}),
        ...(streamedType === undefined ? {} : { 'content-type': streamedType }),
      },
    });
    if (streamedType === undefined) request.end(bytes);
    return request;
  }

  async #parsed(response: IncomingMessage): Promise<unknown> {
    for (const warning of warningsIn(response.headers.warning)) this.#warn(warning);
    if (!isSuccess(response)) throw await errorOf(response);
    const text = await readAll(response);
    try {
      return JSON.parse(text);
    } catch (error) {
      throw new Error(`${this.#server.origin} did not answer JSON; is it a Sandpool daemon?`, {
        cause: error,
      });
    }
  }

  async *#bytesOf(
    response: IncomingMessage,
    { deadlineMs, signal }: Exchange,
  ): AsyncGenerator<Buffer, void, undefined> {
    const { origin } = this.#server;
    const stall = (): void => {
      const text = `${origin} has sent nothing for ${deadlineMs / 1_000} s`;
      response.destroy(new ConnectionFailed(text, 'DEADLINE'));
    };
    let timer = setTimeout(stall, deadlineMs);
    try {
      for await (const piece of response as AsyncIterable<Buffer>) {
        clearTimeout(timer);
        yield piece;
        timer = setTimeout(stall, deadlineMs);
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof ConnectionFailed) throw error;
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'CUT';
      throw new ConnectionFailed(`the connection to ${origin} broke`, code, { cause: error });
    } finally {
      clearTimeout(timer);
      response.destroy();
    }
  }

  #failure(error: unknown, { signal, deadlineMs }: Exchange, deadline: AbortSignal): Error {
    signal?.throwIfAborted();
    return deadline.aborted
      ? noAnswerFrom(this.#server, deadlineMs)
      : asConnectionFailure(error, this.#server);
  }
}

const responseTo = (request: ClientRequest): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    request.once('response', resolve).on('error', reject);
  });

const isSuccess = ({ statusCode = 0 }: IncomingMessage): boolean =>
  statusCode >= 200 && statusCode <= 299;

export const errorOf = async (response: IncomingMessage): Promise<ApiError> =>
  new ApiError(response.statusCode ?? 0, response.headers, await readAll(response));

/** Calls `stall` if the service neither reads nor sends for the deadline while data is pending. */
const watchSilence = (
  request: ClientRequest,
  deadlineMs: number,
  stall: () => void,
): NodeJS.Timeout => {
  let written = -1;
  let since = performance.now();
  const look = (): void => {
    const waits = request.writableNeedDrain || request.writableEnded || request.socket === null;
    const now = request.socket?.bytesWritten ?? 0;
    if (!waits || now !== written) {
      written = now;
      since = performance.now();
    } else if (performance.now() - since >= deadlineMs) stall();
  };
  return setInterval(look, Math.max(10, Math.min(1_000, deadlineMs / 4)));
};

export const noAnswerFrom = (server: URL, deadlineMs: number, options?: ErrorOptions): Error =>
  new ConnectionFailed(
    `no answer from ${server.origin} within ${deadlineMs / 1_000} s`,
    'DEADLINE',
    options,
  );

/** Returns other errors unchanged. */
export const asConnectionFailure = (error: unknown, server: URL): Error => {
  if (!(error instanceof Error)) return new Error(String(error));
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  if (code === undefined || error instanceof ConnectionFailed) return error;
  if (code.startsWith('ERR_HTTP_INVALID') || code === 'ERR_INVALID_CHAR')
    return new Error(`the API key cannot be sent: ${error.message}`);
  return new ConnectionFailed(
    `cannot connect to ${server.origin}: ${error.message || code}`,
    code,
    {
      cause: error,
    },
  );
};

/** `299 - "text"`, separated by commas. */
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
