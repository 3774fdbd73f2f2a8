import type { Clock } from '../../../src/contracts/clock.ts';

/**
 * A clock that stands still until it is moved. What falls due is called in the order of its
 * moments, the clock standing at each.
 */
export class TestClock implements Clock {
  #now: number;
  #waiting: { readonly moment: number; readonly due: () => void }[] = [];

  constructor(now = Date.UTC(2026, 0, 1)) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  /** Moments that are waited for. */
  get waiting(): number {
    return this.#waiting.length;
  }

  at(moment: number, due: () => void): () => void {
    const entry = { moment, due };
    const place = this.#waiting.findIndex((other) => other.moment > moment);
    this.#waiting.splice(place < 0 ? this.#waiting.length : place, 0, entry);
    return () => {
      this.#waiting = this.#waiting.filter((other) => other !== entry);
    };
  }

  /** Also calls what was already due. What a callback arms within the distance is called too. */
  advance(milliseconds: number): void {
    const until = this.#now + milliseconds;
    for (let next = this.#waiting[0]; next && next.moment <= until; next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#now = Math.max(this.#now, next.moment);
      next.due();
    }
    this.#now = until;
  }

  /**
   * Moves on as a paused machine or a stopped process sees it: what falls due in the pause is
   * called once the pause is over, and sees the time of its end.
   */
  pause(milliseconds: number): void {
    this.#now += milliseconds;
    this.advance(0);
  }
}
