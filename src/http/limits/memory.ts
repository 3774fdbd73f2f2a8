import type { ServerResponse } from 'node:http';
import type { AnswerBudget, AnswerRoom } from '../../actors/sandbox/commands/answer-budget.ts';
import type { Log } from '../../contracts/log.ts';
import { tenantKey, type Caller } from '../../model/tenant.ts';

/**
 * Bounds what the bodies that are still arriving hold together. Past `mostBytes` the oldest are
 * refused: a client that sends slowly on many connections gives way to those that send at once.
 */
export class ArrivingBodies {
  readonly #mostBytes: number;
  /** The oldest first. */
  readonly #held = new Map<Arriving, number>();
  #bytes = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  /** So many bytes more of this body wait for the rest. */
  hold(body: Arriving, bytes: number): void {
    this.#held.set(body, (this.#held.get(body) ?? 0) + bytes);
    this.#bytes += bytes;
    for (const [oldest] of this.#held) {
      if (this.#bytes <= this.#mostBytes) break;
      this.letGo(oldest);
      oldest.refuse();
    }
  }

  /** It is whole, or over. May be repeated. */
  letGo(body: Arriving): void {
    this.#bytes -= this.#held.get(body) ?? 0;
    this.#held.delete(body);
  }
}

interface Arriving {
  readonly refuse: () => void;
}

/**
 * Returns what gives a request its room in the budget for answers: none is taken before it is asked
 * for, and all is given back when the response is over.
 */
export const roomOf = (
  res: ServerResponse,
  answers: AnswerBudget,
  caller: Caller | undefined,
): (() => AnswerRoom) => {
  let room: AnswerRoom | undefined;
  return () => {
    if (room) return room;
    const taken = (room = answers.room(caller ? tenantKey(caller) : ''));
    if (res.destroyed) taken.release();
    else
      res.once('close', () => {
        taken.release();
      });
    return taken;
  };
};

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
