import type { Clock } from '../../contracts/clock.ts';

/**
 * The API server's time, advanced by the machine's monotonic clock. Many answers narrow the
 * estimate from one second to some milliseconds. Corrections run up to a tenth faster or slower, so
 * the clock never runs backwards and never jumps. Whole milliseconds.
 */
export class ServerClock implements Clock {
  readonly #monotonic: () => number;
  #least = Number.NEGATIVE_INFINITY;
  #most = Number.POSITIVE_INFINITY;
  #observedAt = 0;
  /** At `#since`; moves towards the nearest possible one. Undefined before the first answer. */
  #offset: number | undefined;
  #since = 0;
  #lastDate = '';
  #lastSecond = 0;

  constructor(monotonic: () => number = () => performance.now()) {
    this.#monotonic = monotonic;
  }

  observe(date: string, sentAt: number): void {
    const second = this.#secondOf(date);
    if (Number.isNaN(second)) return;
    const now = this.#monotonic();
    const [least, most] = [second - now, second + 1_000 - sentAt];
    if (this.#offset !== undefined) this.#offset = this.#offsetAt(now, this.#offset);
    this.#since = now;
    const drift = DRIFT * (now - this.#observedAt);
    this.#observedAt = now;
    this.#least = Math.max(this.#least - drift, least);
    this.#most = Math.min(this.#most + drift, most);
    // the server's clock was set, or another server answers
    if (this.#least > this.#most) [this.#least, this.#most] = [least, most];
    this.#offset ??= (least + most) / 2;
  }

  /** Throws before the first answer. */
  now(): number {
    if (this.#offset === undefined) throw new Error('the API server has not sent its time yet');
    const now = this.#monotonic();
    return Math.floor(now + this.#offsetAt(now, this.#offset));
  }

  at(moment: number, due: () => void): () => void {
    let timer: NodeJS.Timeout;
    const arm = (): void => {
      const left = Math.max(moment - this.now(), 0);
      timer = setTimeout(ring, Math.min(left / (1 + SLEW), LONGEST_TIMER_MS)).unref();
    };
    const ring = (): void => {
      if (this.now() >= moment) due();
      else arm();
    };
    arm();
    return () => {
      clearTimeout(timer);
    };
  }

  #offsetAt(now: number, offset: number): number {
    const nearest = Math.min(Math.max(offset, this.#least), this.#most);
    const furthest = SLEW * (now - this.#since);
    return offset + Math.min(Math.max(nearest - offset, -furthest), furthest);
  }

  #secondOf(date: string): number {
    if (date !== this.#lastDate) [this.#lastDate, this.#lastSecond] = [date, Date.parse(date)];
    return this.#lastSecond;
  }
}

/** A broken clock's drift against another machine's: 200 ppm. */
const DRIFT = 200e-6;
const SLEW = 0.1;
/** Node fires a longer timer at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
