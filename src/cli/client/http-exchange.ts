import {
  Agent as HttpAgent,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as httpRequest,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { Readable } from 'node:stream';
import { sentAgain, type AwaitedApproval, untilApproved } from './until-approved.ts';
import { apiErrorFrom, ConnectionFailed } from './api-error.ts';

export interface Exchange {
  readonly method: string;
  /** From the server's address on, with its query. */
  readonly path: string;
  readonly body?: unknown;
  readonly deadlineMs: number;
  readonly signal?: AbortSignal;
  /** `application/json` unless told. */
  readonly accept?: string;
  /** The id of the last event that was seen, after which an event stream goes on. */
  readonly lastEventId?: string;
}

/** Told of what answers say besides. */
export interface ExchangeReports {
  /** Told of each `Warning` of an answer. */
  readonly warn?: (text: string) => void;
  /** Told of a request that waits for a person, once; it is repeated then until it is decided. */
  readonly onApproval?: (approval: AwaitedApproval) => void;
}

/** A body that is sent as it comes, of any length. */
export interface Upload {
  readonly content: AsyncIterable<Buffer>;
  readonly contentType: string;
}

/** An answer of any length. Whoever has it reads `bytes` or calls `close`. */
export interface Download {
  readonly headers: IncomingHttpHeaders;
  /**
   * Read no faster than they are taken. Throws ConnectionFailed where the answer is cut off, or
   * stands still for longer than the deadline.
   */
  readonly bytes: AsyncIterable<Buffer>;
  readonly close: () => void;
}

/** The most of an answer that is read, in bytes. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/**
 * JSON over HTTP, one answer a call, and files of any length. Node's own client and not fetch,
 * which gives up on answers that take 300 s, as a command may. Follows no redirect, so the key goes
 * nowhere else.
 */
export class HttpExchanges {
  readonly #server: URL;
  readonly #apiKey: string;
  readonly #agent: HttpAgent | HttpsAgent;
  readonly #warn: (text: string) => void;
  readonly #onApproval: ((approval: AwaitedApproval) => void) | undefined;

  constructor(
    server: URL,
    apiKey: string,
    { warn = () => undefined, onApproval }: ExchangeReports = {},
  ) {
    this.#server = server;
    this.#apiKey = apiKey;
    this.#warn = warn;
    this.#onApproval = onApproval;
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
    const told = this.#onApproval;
    return told
      ? await untilApproved(exchange, (each) => this.#call(each), told)
      : await this.#call(exchange);
  }

  async #call(exchange: Exchange): Promise<unknown> {
    exchange.signal?.throwIfAborted();
    const deadline = AbortSignal.timeout(exchange.deadlineMs);
    const signal = exchange.signal ? AbortSignal.any([exchange.signal, deadline]) : deadline;
    try {
      return await this.#parsed(await responseTo(this.#request(exchange, signal)));
    } catch (error) {
      throw this.#failure(error, exchange, deadline);
    }
  }

  /** An answer that goes on: the deadline is for its beginning alone. Rejects as `call` does. */
  async open(exchange: Exchange): Promise<IncomingMessage> {
    const told = this.#onApproval;
    return told
      ? await untilApproved(exchange, (each) => this.#open(each), told)
      : await this.#open(exchange);
  }

  async #open(exchange: Exchange): Promise<IncomingMessage> {
    exchange.signal?.throwIfAborted();
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), exchange.deadlineMs);
    const signal = exchange.signal
      ? AbortSignal.any([exchange.signal, deadline.signal])
      : deadline.signal;
    try {
      const response = await responseTo(this.#request(exchange, signal));
      const status = response.statusCode ?? 0;
      if (status < 200 || status > 299)
        throw apiErrorFrom(status, response.headers, await readAll(response));
      return response;
    } catch (error) {
      throw this.#failure(error, exchange, deadline.signal);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Opens an answer of any length. The deadline is for its silences. Rejects as `call` does. */
  async download(exchange: Exchange): Promise<Download> {
    const response = await this.open(exchange);
    return {
      headers: response.headers,
      bytes: this.#bytesOf(response, exchange),
      close: () => void response.destroy(),
    };
  }

  /**
   * Sends a body of any length no faster than it is taken, and stops where the answer comes first.
   * The deadline is for silences of the service alone. Rejects as `call` does, and with what
   * reading the content throws.
   */
  async upload(given: Exchange & Upload): Promise<unknown> {
    const told = this.#onApproval;
    if (!told) return await this.#upload(given);
    const content = sentAgain(given.content);
    return await untilApproved(
      given,
      (each) => this.#upload({ ...each, content: content() }),
      told,
    );
  }

  async #upload({ content, contentType, ...exchange }: Exchange & Upload): Promise<unknown> {
    exchange.signal?.throwIfAborted();
    const stalled = new AbortController();
    const signal = exchange.signal
      ? AbortSignal.any([exchange.signal, stalled.signal])
      : stalled.signal;
    const request = this.#request(exchange, signal, contentType);
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

  #request(
    { method, path, body, accept = 'application/json', lastEventId }: Exchange,
    signal: AbortSignal,
    streamedType?: string,
  ): ClientRequest {
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const send = this.#server.protocol === 'https:' ? httpsRequest : httpRequest;
    const request = send(new URL(`${this.#server.href.replace(/\/+$/, '')}${path}`), {
      method,
      signal,
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
    const text = await readAll(response);
    for (const warning of warningsIn(response.headers.warning)) this.#warn(warning);
    const status = response.statusCode ?? 0;
    if (status < 200 || status > 299) throw apiErrorFrom(status, response.headers, text);
    return parsed(text, this.#server);
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

  #failure(error: unknown, exchange: Exchange, deadline: AbortSignal): Error {
    exchange.signal?.throwIfAborted();
    if (!deadline.aborted) return asConnectionFailure(error, this.#server);
    return new ConnectionFailed(
      `no answer from ${this.#server.origin} within ${exchange.deadlineMs / 1_000} s`,
      'DEADLINE',
    );
  }
}

const responseTo = (request: ClientRequest): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    request.once('response', resolve).on('error', reject);
  });

/**
 * Calls `stall` once the service has neither taken nor answered anything for so long, though
 * something waits for it.
 */
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
