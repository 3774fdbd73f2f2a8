import type { Dispatcher } from 'undici';
import { LeaseLost } from '../../contracts/sandbox-driver.ts';
import { ApiUnreachable, NotSent } from './api-errors.ts';

export interface Exchange {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Encoded, with the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly deadlineMs: number;
  /** Called right before the first byte is written; the answer then has this deadline. */
  readonly permission?: { readonly permitted: () => boolean; readonly answeredWithinMs: number };
}

export interface Answer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  readonly body: string;
}

export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>;

/**
 * One request and its answer of at most 64 MiB. Rejects with NotSent if nothing was written by the
 * deadline, with LeaseLost without permission, and afterwards with ApiUnreachable: written bytes
 * may have been read.
 */
export const exchange = (pool: Dispatcher, wanted: Exchange): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const { method, path, headers, body } = wanted;
    // undici reports a faulty request to its handler; errors thrown after that are ignored.
    pool.dispatch(
      { method, path, headers, reset: false, body },
      new ExchangeHandler(wanted, { resolve, reject }),
    );
  });

interface Settling {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

class ExchangeHandler implements Dispatcher.DispatchHandler {
  readonly #wanted: Exchange;
  readonly #settling: Settling;
  readonly #dueAt: number;
  #timer: NodeJS.Timeout;
  #begun: Dispatcher.DispatchController | undefined;
  #overdue = false;
  #status = 0;
  #headers: AnswerHeaders = {};
  #size = 0;
  readonly #chunks: Buffer[] = [];

  constructor(wanted: Exchange, settling: Settling) {
    this.#wanted = wanted;
    this.#settling = settling;
    this.#dueAt = performance.now() + wanted.deadlineMs;
    this.#timer = this.#endIn(wanted.deadlineMs);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    const { permission } = this.#wanted;
    // A second start would send the request again.
    if (this.#overdue || this.#begun) {
      controller.abort(new NotSent('given up'));
      return;
    }
    if (permission?.permitted() === false) {
      this.#overdue = true;
      clearTimeout(this.#timer);
      this.#settling.reject(new LeaseLost(this.#saying('not sent in time')));
      controller.abort(new NotSent('given up'));
      return;
    }
    this.#begun = controller;
    if (!permission) return;
    clearTimeout(this.#timer);
    this.#timer = this.#endIn(
      Math.min(permission.answeredWithinMs, Math.max(0, this.#dueAt - performance.now())),
    );
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: AnswerHeaders,
  ): void {
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#size > LONGEST_ANSWER) controller.abort(new ApiUnreachable('the answer is too long'));
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    clearTimeout(this.#timer);
    const [only, ...more] = this.#chunks;
    this.#settling.resolve({
      status: this.#status,
      headers: this.#headers,
      body: (only && more.length === 0 ? only : Buffer.concat(this.#chunks)).toString('utf8'),
    });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#failed(error.message, error);
  }

  #endIn(ms: number): NodeJS.Timeout {
    return setTimeout(() => {
      this.#overdue = true;
      this.#failed(`no answer within ${ms} ms`);
      this.#begun?.abort(new ApiUnreachable('overdue'));
    }, ms);
  }

  #failed(why: string, cause?: Error): void {
    clearTimeout(this.#timer);
    const message = this.#saying(why);
    this.#settling.reject(
      this.#begun ? new ApiUnreachable(message, { cause }) : new NotSent(message, { cause }),
    );
  }

  #saying(why: string): string {
    return `${this.#wanted.method} ${pathOf(this.#wanted.path)}: ${why}`;
  }
}

const LONGEST_ANSWER = 64 * 2 ** 20;

const pathOf = (path: string): string => path.split('?', 1)[0] ?? path;
