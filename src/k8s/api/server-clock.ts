import type { Clock } from '../../contracts/clock.ts';

/**
 * Time as the API server tells it, carried on by the machine's monotonic clock, so that a jump of
 * the local clock changes nothing. Each answer's `Date` says in which second it was made; what many
 * of them leave open narrows from a second to some milliseconds. The first one sets the clock.
 * Later corrections are made by going up to a tenth faster or slower: it never runs backwards and
 * never jumps, not even where the server's time does. Whole milliseconds.
 */
export class ServerClock implements Clock {
  readonly #monotonic: () => number;
  /** Server time less monotonic time lies between these. */
  #least = Number.NEGATIVE_INFINITY;
  #most = Number.POSITIVE_INFINITY;
  #observedAt = 0;
  /**
   * In force at `#since`; from there it moves towards the nearest offset that is possible.
   * Undefined before the first answer.
   */
  #offset: number | undefined;
  #since = 0;
  #lastDate = '';
  #lastSecond = 0;

  /** Milliseconds that only go forward, from anywhere. */
  constructor(monotonic: () => number = () => performance.now()) {
    this.#monotonic = monotonic;
  }

  /**
   * Told the `Date` of an answer that has just come to a request sent at `sentAt` of the monotonic
   * clock. One that can't be read changes nothing.
   */
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
    // the server's own clock was set, or another server answers
    if (this.#least > this.#most) [this.#least, this.#most] = [least, most];
    this.#offset ??= (least + most) / 2;
  }

  /** Throws before the first answer: until then nobody knows the time. */
  now(): number {
    if (this.#offset === undefined) throw new Error('the API server has not told the time yet');
    const now = this.#monotonic();
    return Math.floor(now + this.#offsetAt(now, this.#offset));
  }

  at(moment: number, due: () => void): () => void {
    let timer: NodeJS.Timeout;
    const arm = (): void => {
      // A tenth early: the clock may go faster than the timer.
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

/** How far two machines' clocks may part in a millisecond; a broken one's 200 ppm. */
const DRIFT = 200e-6;
/** Most that it goes faster or slower. */
const SLEW = 0.1;
/** The longest that a Node timer holds, in ms; a longer one would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
