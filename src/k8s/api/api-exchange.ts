import type { Dispatcher } from 'undici';
import { LeaseLost } from '../../contracts/sandbox-driver.ts';
import { ApiUnreachable, NotSent } from './api-errors.ts';

export interface Exchange {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With its query, encoded. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly deadlineMs: number;
  /**
   * Asked right before the first byte is written; from then on the answer is waited for so long at
   * most.
   */
  readonly permission?: { readonly permitted: () => boolean; readonly answeredWithinMs: number };
}

export interface Answer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  readonly body: string;
}

export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>;

/**
 * One request and its whole answer, of at most 64 MiB. Rejects with NotSent where not one byte was
 * written by the deadline, with LeaseLost where that was no longer permitted, and with
 * ApiUnreachable from then on: what was written may have been read, however soon the link was cut.
 * undici never repeats a request on its own here: without pipelining, the one on a connection that
 * closes fails.
 */
export const exchange = (
  pool: Dispatcher,
  { method, path, headers, body, deadlineMs, permission }: Exchange,
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    let begun: Dispatcher.DispatchController | undefined;
    let overdue = false;
    let status = 0;
    let answerHeaders: AnswerHeaders = {};
    let size = 0;
    const chunks: Buffer[] = [];
    const failed = (why: string, cause?: Error): void => {
      clearTimeout(timer);
      const message = `${method} ${pathOf(path)}: ${why}`;
      reject(begun ? new ApiUnreachable(message, { cause }) : new NotSent(message, { cause }));
    };
    const endIn = (ms: number): NodeJS.Timeout =>
      setTimeout(() => {
        overdue = true;
        failed(`no answer within ${ms} ms`);
        begun?.abort(new ApiUnreachable('overdue'));
      }, ms);
    const dueAt = performance.now() + deadlineMs;
    let timer = endIn(deadlineMs);
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart: (controller) => {
        // A second start would write the request a second time.
        if (overdue || begun) {
          controller.abort(new NotSent('given up'));
          return;
        }
        if (permission?.permitted() === false) {
          overdue = true;
          clearTimeout(timer);
          reject(new LeaseLost(`${method} ${pathOf(path)}: not sent in time`));
          controller.abort(new NotSent('given up'));
          return;
        }
        begun = controller;
        if (!permission) return;
        clearTimeout(timer);
        timer = endIn(
          Math.min(permission.answeredWithinMs, Math.max(0, dueAt - performance.now())),
        );
      },
      onResponseStart: (_controller, statusCode, given) => {
        status = statusCode;
        answerHeaders = given;
      },
      onResponseData: (controller, chunk) => {
        size += chunk.length;
        if (size > LONGEST_ANSWER) controller.abort(new ApiUnreachable('the answer is too long'));
        else chunks.push(chunk);
      },
      onResponseEnd: () => {
        clearTimeout(timer);
        const [only] = chunks;
        resolve({
          status,
          headers: answerHeaders,
          body: (chunks.length === 1 && only ? only : Buffer.concat(chunks)).toString('utf8'),
        });
      },
      onResponseError: (_controller, error) => {
        failed(error.message, error);
      },
    };
    // undici answers a faulty request by its own handler too; nothing is thrown after that.
    // `reset: false` keeps the connection after a DELETE with a body too.
    pool.dispatch({ method, path, headers, reset: false, body }, handler);
  });

const LONGEST_ANSWER = 64 * 2 ** 20;

/** For messages: without the query, which may be long. */
const pathOf = (path: string): string => path.split('?', 1)[0] ?? path;
