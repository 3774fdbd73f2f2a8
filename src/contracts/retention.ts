import type { Clock } from './clock.ts';

/** What every history is told. */
export interface RetentionOptions {
  readonly clock: Clock;
  /** How long a finished sandbox is kept, in ms after it ended. */
  readonly retentionMs: number;
}

export interface RetentionSteps {
  /** Forgets some of what ended before the moment; answers whether there may be more. */
  forget(before: number): Promise<boolean>;
  /** A step rejected; the next one comes in its time. */
  failed(error: unknown): void;
}

const STEP_PAUSE_MS = 50;
export const SWEEP_PAUSE_MS = 60_000;

/** Has a history forget what is older than retention, from `start()` to `stop()`: one step, the next one soon while there is more, else in a minute. */
export class Retention {
  readonly #options: RetentionOptions;
  readonly #steps: RetentionSteps;
  #cancel: (() => void) | undefined;
  #step: Promise<void> = Promise.resolve();
  #running = false;

  constructor(options: RetentionOptions, steps: RetentionSteps) {
    this.#options = options;
    this.#steps = steps;
  }

  start(): void {
    if (this.#running) return;
    this.#running = true;
    this.#stepIn(0);
  }

  /** Resolves when the step under way, if any, has ended. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#cancel?.();
    await this.#step;
  }

  #stepIn(delayMs: number): void {
    if (!this.#running) return;
    const { clock } = this.#options;
    this.#cancel = clock.at(clock.now() + delayMs, () => { this.#step = this.#forget(); });
  }

  /** Never rejects. */
  async #forget(): Promise<void> {
    const { clock, retentionMs } = this.#options;
    let pause = SWEEP_PAUSE_MS;
    try {
      if (await this.#steps.forget(clock.now() - retentionMs)) pause = STEP_PAUSE_MS;
    } catch (error) {
      this.#steps.failed(error);
    }
    this.#stepIn(pause);
  }
}
