import { setImmediate as nextTurn } from 'node:timers/promises';

/** Cuts long work into slices, between which the event loop gets its turn. */
export class Slices {
  readonly #longestMs: number;
  #began = performance.now();

  constructor(longestMs: number) {
    this.#longestMs = longestMs;
  }

  /** Whether the slice is used up; then `next` is to be awaited. */
  get usedUp(): boolean {
    return performance.now() - this.#began >= this.#longestMs;
  }

  async next(): Promise<void> {
    await nextTurn();
    this.#began = performance.now();
  }
}
