import type { ServerResponse } from 'node:http';
import type { Log } from '../../contracts/log.ts';

/**
 * Shorter answers wait in the connection; they are few bytes, and as many as there are connections.
 */
const LONG_BYTES = 64 * 1024;

/**
 * Answers that their clients don't read: one that makes no progress for `stallMs` is cut. A
 * command's output is megabytes, and any tenant may ask and never read.
 */
export class UnreadAnswers {
  readonly stallMs: number;
  readonly #log: Log;
  readonly #watched = new WeakSet<ServerResponse>();

  constructor(options: { readonly stallMs: number; readonly log: Log }) {
    this.stallMs = options.stallMs;
    this.#log = options.log;
  }

  /** To be called once the answer is written, as far as its client took it. */
  follow(response: ServerResponse): void {
    if (response.writableLength > LONG_BYTES) this.watch(response);
  }

  /** To be called for an answer whose pieces follow one another. */
  watch(response: ServerResponse): void {
    if (response.destroyed || this.#watched.has(response)) return;
    this.#watched.add(response);
    // Before Node sets the connection's own timeout for the next request.
    response.prependOnceListener('finish', () => response.socket?.setTimeout(0));
    response.setTimeout(this.stallMs, () => {
      this.#log.info({ why: 'stalled', bytes: response.writableLength }, 'unread-answer-cut');
      response.destroy();
    });
  }
}
