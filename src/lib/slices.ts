import { setImmediate as nextTurn } from 'node:timers/promises';

/** Yields to the event loop between slices. */
export class Slices {
  readonly #longestMs: number;
  #began = performance.now();

  constructor(longestMs: number) {
    this.#longestMs = longestMs;
  }

  /** The caller must then await `next`. */
  get usedUp(): boolean {
    return performance.now() - this.#began >= this.#longestMs;
  }

  async next(): Promise<void> {
    await nextTurn();
    this.#began = performance.now();
  }
}
