import type { ServerResponse } from 'node:http';
import type { AnswerBudget, AnswerRoom } from '../../actors/sandbox/commands/answer-budget.ts';
import type { Log } from '../../contracts/log.ts';
import { tenantKey, type Caller } from '../../model/tenant.ts';

/**
 * Beyond `mostBytes` refuses the oldest body, so a client that sends slowly on many connections
 * yields to faster ones.
 */
export class ArrivingBodies {
  readonly #mostBytes: number;
  /** Oldest first. */
  readonly #held = new Map<Arriving, number>();
  #bytes = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  hold(body: Arriving, bytes: number): void {
    this.#held.set(body, (this.#held.get(body) ?? 0) + bytes);
    this.#bytes += bytes;
    for (const [oldest] of this.#held) {
      if (this.#bytes <= this.#mostBytes) break;
      this.letGo(oldest);
      oldest.refuse();
    }
  }

  /** May be repeated. */
  letGo(body: Arriving): void {
    this.#bytes -= this.#held.get(body) ?? 0;
    this.#held.delete(body);
  }
}

interface Arriving {
  readonly refuse: () => void;
}

/** Reserves nothing before the first call. Releases everything when the response closes. */
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

/** Shorter answers are not watched: connections bound their number. */
const LONG_BYTES = 64 * 1024;

/** A tenant could request megabytes and never read. */
export class UnreadAnswers {
  readonly stallMs: number;
  readonly #log: Log;
  readonly #watched = new WeakSet<ServerResponse>();

  constructor(options: { readonly stallMs: number; readonly log: Log }) {
    this.stallMs = options.stallMs;
    this.#log = options.log;
  }

  follow(response: ServerResponse): void {
    if (response.writableLength > LONG_BYTES) this.watch(response);
  }

  watch(response: ServerResponse): void {
    if (response.destroyed || this.#watched.has(response)) return;
    this.#watched.add(response);
    // Must run before Node sets the timeout for the next request.
    response.prependOnceListener('finish', () => response.socket?.setTimeout(0));
    response.setTimeout(this.stallMs, () => {
      this.#log.info({ why: 'stalled', bytes: response.writableLength }, 'unread-answer-cut');
      response.destroy();
    });
  }
}
