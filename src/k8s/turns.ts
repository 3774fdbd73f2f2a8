import { NotSent } from './api-errors.ts';

/** At most `most` at once; others wait their turn, at most `mostWaiting` of them, the first first. */
export class Turns {
  readonly #most: number;
  readonly #mostWaiting: number;
  readonly #waiting = new Set<() => void>();
  readonly #untilCalm = new Set<() => void>();
  #taken = 0;

  constructor(most: number, mostWaiting: number) {
    this.#most = most;
    this.#mostWaiting = mostWaiting;
  }

  /** Answers the milliseconds that it took. Rejects with NotSent where no turn came within `patienceMs`, or too many wait. */
  async take(patienceMs: number): Promise<number> {
    if (this.#taken < this.#most) {
      this.#taken += 1;
      return 0;
    }
    if (this.#waiting.size >= this.#mostWaiting) throw new NotSent(`${this.#mostWaiting} requests wait for a connection already`);
    const began = performance.now();
    await new Promise<void>((resolve, reject) => {
      const mine = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(mine);
        reject(new NotSent(`no free connection within ${patienceMs} ms`));
      }, patienceMs);
      this.#waiting.add(mine);
    });
    return performance.now() - began;
  }

  /** Resolves once fewer than half are taken, or after `withinMs`. */
  async calm(withinMs: number): Promise<void> {
    if (this.#taken < this.#most / 2) return;
    await new Promise<void>((resolve) => {
      const mine = (): void => {
        clearTimeout(timer);
        this.#untilCalm.delete(mine);
        resolve();
      };
      const timer = setTimeout(mine, withinMs);
      this.#untilCalm.add(mine);
    });
  }

  /** Gives the turn to the next one. */
  done(): void {
    const [next] = this.#waiting;
    if (!next) {
      this.#taken -= 1;
      if (this.#taken < this.#most / 2) for (const calm of [...this.#untilCalm]) calm();
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
