import type { Clock } from '../../../src/contracts/clock.ts';

/** Moves only on request. Callbacks run in order, each at its own moment. */
export class TestClock implements Clock {
  #now: number;
  #waiting: { readonly moment: number; readonly due: () => void }[] = [];

  constructor(now = Date.UTC(2026, 0, 1)) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  /** Number of pending moments. */
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

  /** Also runs overdue callbacks, and those armed on the way. */
  advance(milliseconds: number): void {
    const until = this.#now + milliseconds;
    for (let next = this.#waiting[0]; next && next.moment <= until; next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#now = Math.max(this.#now, next.moment);
      next.due();
    }
    this.#now = until;
  }

  /** Moves like a paused machine: callbacks due in the pause run at its end. */
  pause(milliseconds: number): void {
    this.#now += milliseconds;
    this.advance(0);
  }
}
