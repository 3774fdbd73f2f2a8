import type { Dispatcher } from 'undici';
import { ApiUnreachable, NotSent, refusedBy } from './api-errors.ts';
import type { AnswerHeaders } from './api-exchange.ts';
import { ByteQueue } from '../../lib/streams/byte-queue.ts';

export interface WatchRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly deadlineMs: number;
  readonly silenceMs: number;
  readonly signal: AbortSignal;
  readonly answered: (headers: AnswerHeaders) => void;
}

/**
 * Yields the lines of one endless answer, on its own connection, with back-pressure beyond 1 MiB.
 * Throws ApiRefused, NotSent or ApiUnreachable.
 */
export async function* watchLines(pool: Dispatcher, request: WatchRequest): AsyncGenerator<string> {
  const reader = new WatchReader(request);
  const abort = (): void => {
    reader.end();
  };
  if (request.signal.aborted) return;
  request.signal.addEventListener('abort', abort, { once: true });
  try {
    pool.dispatch(
      {
        method: 'GET',
        path: request.path,
        headers: request.headers,
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      reader,
    );
    for (;;) {
      const line = reader.next();
      if (line !== undefined) yield line;
      else if (reader.ended) return;
      else await reader.more();
    }
  } finally {
    request.signal.removeEventListener('abort', abort);
    reader.end();
  }
}

const LONGEST_LINE = 8 * 2 ** 20;
const LONGEST_REFUSAL = 64 * 2 ** 10;
/** In characters; reading goes on once half are consumed. */
const HIGH_WATER = 2 ** 20;

class WatchReader implements Dispatcher.DispatchHandler {
  readonly #request: WatchRequest;
  readonly #splitter = new LineSplitter(LONGEST_LINE);
  #controller: Dispatcher.DispatchController | undefined;
  #lines: string[] = [];
  #at = 0;
  #waiting = 0;
  #status = 0;
  #headers: AnswerHeaders = {};
  #refusal = '';
  #failure: Error | undefined;
  #wake: (() => void) | undefined;
  #timer: NodeJS.Timeout;
  ended = false;

  constructor(request: WatchRequest) {
    this.#request = request;
    this.#timer = setTimeout(() => {
      this.#overdue();
    }, request.deadlineMs);
  }

  /** After the last line, throws the watch's failure, if any. */
  next(): string | undefined {
    const line = this.#lines[this.#at];
    if (line === undefined) {
      this.#lines = [];
      this.#at = 0;
      if (this.#failure) throw this.#failure;
      return undefined;
    }
    this.#at += 1;
    this.#waiting -= line.length;
    if (this.#waiting <= HIGH_WATER / 2 && this.#controller?.paused) {
      this.#timer.refresh();
      this.#controller.resume();
    }
    return line;
  }

  more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  end(failure?: Error): void {
    if (this.ended) return;
    this.ended = true;
    this.#failure = failure;
    clearTimeout(this.#timer);
    this.#controller?.abort(failure ?? new NotSent('no longer needed'));
    this.#wake?.();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.ended || this.#controller) controller.abort(new NotSent('no longer needed'));
    else this.#controller = controller;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: AnswerHeaders,
  ): void {
    this.#status = status;
    this.#headers = headers;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#silent();
    }, this.#request.silenceMs);
    this.#request.answered(headers);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#timer.refresh();
    if (this.#status >= 400) {
      if (this.#refusal.length < LONGEST_REFUSAL) this.#refusal += chunk.toString('utf8');
      return;
    }
    try {
      for (const line of this.#splitter.push(chunk)) {
        if (line === '') continue;
        this.#lines.push(line);
        this.#waiting += line.length;
      }
    } catch (error) {
      this.end(this.#unreachable(error instanceof Error ? error.message : String(error)));
      return;
    }
    if (this.#waiting > HIGH_WATER) controller.pause();
    this.#wake?.();
  }

  onResponseEnd(): void {
    const retryAfter = this.#headers['retry-after'];
    this.end(
      this.#status >= 400
        ? refusedBy(
            this.#status,
            this.#refusal,
            typeof retryAfter === 'string' ? retryAfter : undefined,
          )
        : undefined,
    );
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.end(
      this.#controller
        ? this.#unreachable(error.message, error)
        : new NotSent(`watch ${this.#path}: ${error.message}`, { cause: error }),
    );
  }

  get #path(): string {
    return this.#request.path.split('?', 1)[0] ?? '';
  }

  #overdue(): void {
    const why = `no answer within ${this.#request.deadlineMs} ms`;
    this.end(
      this.#controller ? this.#unreachable(why) : new NotSent(`watch ${this.#path}: ${why}`),
    );
  }

  #silent(): void {
    if (this.#controller?.paused) this.#timer.refresh();
    else this.end(this.#unreachable(`no data within ${this.#request.silenceMs} ms`));
  }

  #unreachable(why: string, cause?: Error): ApiUnreachable {
    return new ApiUnreachable(`watch ${this.#path}: ${why}`, { cause });
  }
}

export class LineSplitter {
  readonly #longest: number;
  readonly #rest = new ByteQueue();
  #size = 0;

  constructor(longest: number) {
    this.#longest = longest;
  }

  /** Throws a RangeError for a line that is too long. */
  push(chunk: Buffer): string[] {
    const lines: string[] = [];
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      this.#keep(chunk.subarray(from, end));
      lines.push(this.#take());
      from = end + 1;
    }
    this.#keep(chunk.subarray(from));
    return lines;
  }

  #keep(part: Buffer): void {
    if (part.length === 0) return;
    this.#size += part.length;
    if (this.#size > this.#longest)
      throw new RangeError(`a line is longer than ${this.#longest} bytes`);
    this.#rest.push(part);
  }

  #take(): string {
    this.#size = 0;
    return this.#rest.takeAll().toString('utf8');
  }
}

const NEWLINE = 0x0a;
