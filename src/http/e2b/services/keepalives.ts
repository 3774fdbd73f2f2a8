import type { Clock } from '../../../contracts/clock.ts';
import { overTime } from './rpc/rpc-errors.ts';

export const SILENCE = Symbol('silence');

const DEFAULT_SECONDS = 90;
const MOST_SECONDS = 3_600;

export const keepaliveMs = (header: string | null): number => {
  const seconds = /^[0-9]{1,6}$/.test(header ?? '') ? Number(header) : DEFAULT_SECONDS;
  return Math.min(Math.max(seconds, 1), MOST_SECONDS) * 1_000;
};

export interface SilenceTerms {
  readonly clock: Clock;
  readonly everyMs: number;
  /** The stream then fails with DeadlineExceeded. */
  readonly endsAt?: number;
}

/** Yields SILENCE after each `everyMs` without an item. */
export async function* withSilences<T>(
  items: AsyncIterable<T>,
  { clock, everyMs, endsAt = Infinity }: SilenceTerms,
): AsyncGenerator<T | typeof SILENCE, void, undefined> {
  const iterator = items[Symbol.asyncIterator]();
  const timer = new LateTimer(clock);
  try {
    for (;;) {
      let isThere = false;
      const next = iterator.next();
      const arrived = (): void => {
        isThere = true;
        timer.wake();
      };
      // a rejection is thrown below
      next.then(arrived, arrived);
      while (!isThere) {
        if (clock.now() >= endsAt) throw overTime();
        const silentAt = clock.now() + everyMs;
        await timer.until(Math.min(silentAt, endsAt));
        if (!isThere && clock.now() >= silentAt) yield SILENCE;
      }
      const item = await next;
      if (item.done) return;
      yield item.value;
    }
  } finally {
    timer.stop();
    // A read in progress ends by its own signal.
    void Promise.resolve(iterator.return?.()).catch(() => {});
  }
}

/** Reused for later times, so a busy stream does not arm a timer for each piece. */
class LateTimer {
  readonly #clock: Clock;
  #moment = 0;
  #armedFor = Infinity;
  #cancel = (): void => {};
  #wake = (): void => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** At most one wait at a time. */
  until(moment: number): Promise<void> {
    this.#moment = moment;
    if (moment < this.#armedFor) this.#arm();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  wake(): void {
    this.#wake();
  }

  stop(): void {
    this.#cancel();
    this.#wake();
  }

  #arm(): void {
    this.#cancel();
    this.#armedFor = this.#moment;
    this.#cancel = this.#clock.at(this.#moment, () => {
      this.#armedFor = Infinity;
      if (this.#clock.now() < this.#moment) this.#arm();
      else this.#wake();
    });
  }
}
