import { setImmediate as nextTurn } from 'node:timers/promises';

export interface LoopSlicesTerms {
  /** Milliseconds that only grow; absent: the process' own. */
  readonly now?: () => number;
}

/** Milliseconds of work after which the loop goes round. */
const SLICE_MS = 4;

/**
 * Runs tasks in their order, each after the promises that the one before settled were heard. Once
 * they have kept the event loop busy for a few milliseconds, the loop goes round first: what comes
 * all at once, such as the answers of one commit, holds up nobody else's request for longer.
 */
export class LoopSlices {
  readonly #now: () => number;
  #tasks: (() => void)[] = [];
  #isRunning = false;
  #began = 0;

  constructor({ now = () => performance.now() }: LoopSlicesTerms = {}) {
    this.#now = now;
  }

  /** Runs the task, at once where none waits. It must not throw. */
  put(task: () => void): void {
    this.#tasks.push(task);
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#slice();
  }

  /** Runs at once what still waits. */
  flush(): void {
    for (const task of this.#tasks.splice(0)) task();
  }

  readonly #slice = (): void => {
    this.#began = this.#now();
    this.#next();
  };

  readonly #next = (): void => {
    const task = this.#tasks.shift();
    if (!task) {
      this.#isRunning = false;
      return;
    }
    task();
    // A tick that a microtask asks for comes once there are no more microtasks.
    queueMicrotask(() => {
      process.nextTick(this.#afterTask);
    });
  };

  readonly #afterTask = (): void => {
    if (this.#tasks.length > 0 && this.#now() - this.#began >= SLICE_MS) setImmediate(this.#slice);
    else this.#next();
  };
}

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
