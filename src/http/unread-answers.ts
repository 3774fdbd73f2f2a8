import type { ServerResponse } from 'node:http';
import type { Log } from '../contracts/log.ts';

/** Shorter answers wait in the connection; they are few bytes, and as many as there are connections. */
const LONG_BYTES = 64 * 1024;

/**
 * Answers that their clients don't read. One that makes no progress for `stallMs` is cut, and so are the oldest where all
 * of them together hold more than `mostBytes`: a command's output is megabytes, and any tenant may ask and never read.
 */
export class UnreadAnswers {
  readonly #stallMs: number;
  readonly #mostBytes: number;
  readonly #log: Log;
  /** The oldest first. */
  readonly #held = new Map<ServerResponse, number>();
  #bytes = 0;

  constructor(options: { readonly stallMs: number; readonly mostBytes: number; readonly log: Log }) {
    this.#stallMs = options.stallMs;
    this.#mostBytes = options.mostBytes;
    this.#log = options.log;
  }

  /** To be called once the answer is written, as far as its client took it. */
  follow(response: ServerResponse): void {
    const bytes = response.writableLength;
    if (bytes <= LONG_BYTES || response.destroyed) return;
    this.#held.set(response, bytes);
    this.#bytes += bytes;
    response.once('close', () => this.#forget(response));
    // Before Node sets the connection's own timeout for the next request.
    response.prependOnceListener('finish', () => response.socket?.setTimeout(0));
    response.setTimeout(this.#stallMs, () => this.#cut(response, 'stalled'));
    for (const [oldest] of this.#held) {
      if (this.#bytes <= this.#mostBytes || oldest === response) break;
      this.#cut(oldest, 'too many');
    }
  }

  #cut(response: ServerResponse, why: string): void {
    this.#log.info({ why, bytes: this.#held.get(response) }, 'unread-answer-cut');
    this.#forget(response);
    response.destroy();
  }

  #forget(response: ServerResponse): void {
    this.#bytes -= this.#held.get(response) ?? 0;
    this.#held.delete(response);
  }
}
