import { setImmediate as nextTurn } from 'node:timers/promises';

/** Divides long work into slices, and yields to the event loop between them. */
export class Slices {
  readonly #longestMs: number;
  #began = performance.now();

  constructor(longestMs: number) {
    this.#longestMs = longestMs;
  }

  /** Whether the slice is used up; the caller must then await `next`. */
  get usedUp(): boolean {
    return performance.now() - this.#began >= this.#longestMs;
  }

  async next(): Promise<void> {
    await nextTurn();
    this.#began = performance.now();
  }
}
