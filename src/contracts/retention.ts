import type { ByteBounds } from '../lib/byte-shares.ts';
import type { Clock } from './clock.ts';
import type { Metrics } from './metrics.ts';

export interface RetentionOptions {
  readonly clock: Clock;
  /** In ms, from a sandbox's end. */
  readonly retentionMs: number;
  /** Beyond them, finished sandboxes are deleted early. */
  readonly bounds: ByteBounds;
  readonly metrics: Metrics;
}

export interface RetentionSteps {
  forget(before: number): Promise<boolean>;
  /**
   * If one tenant or all tenants together exceed the bounds, deletes the oldest records of the
   * largest tenant. Returns the number of deleted records.
   */
  trim(bounds: ByteBounds): Promise<number>;
  failed(error: unknown): void;
}

const STEP_PAUSE_MS = 50;
export const SWEEP_PAUSE_MS = 60_000;
const LOOK_RECORDS = 200;

/** Runs one step at a time: soon if there is more, else in a minute, or after 200 records. */
export class Retention {
  readonly #options: RetentionOptions;
  readonly #steps: RetentionSteps;
  #cancel: (() => void) | undefined;
  #step: Promise<void> = Promise.resolve();
  #running = false;
  #recorded = 0;

  constructor(options: RetentionOptions, steps: RetentionSteps) {
    this.#options = options;
    this.#steps = steps;
  }

  start(): void {
    if (this.#running) return;
    this.#running = true;
    this.#stepIn(0);
  }

  recorded(): void {
    this.#recorded += 1;
    if (this.#recorded !== LOOK_RECORDS || !this.#cancel) return; // otherwise a step is in progress
    this.#cancel();
    this.#stepIn(0);
  }

  async stop(): Promise<void> {
    this.#running = false;
    this.#cancel?.();
    await this.#step;
  }

  #stepIn(delayMs: number): void {
    if (!this.#running) return;
    const { clock } = this.#options;
    this.#cancel = clock.at(clock.now() + delayMs, () => {
      this.#step = this.#forget();
    });
  }

  /** Never rejects. */
  async #forget(): Promise<void> {
    const { clock, retentionMs, bounds, metrics } = this.#options;
    let pause = SWEEP_PAUSE_MS;
    this.#cancel = undefined;
    this.#recorded = 0;
    try {
      const [more, trimmed] = await Promise.all([
        this.#steps.forget(clock.now() - retentionMs),
        this.#steps.trim(bounds),
      ]);
      if (trimmed > 0) metrics.count('sandpool_history_forgotten_early_total', {}, trimmed);
      if (more || trimmed > 0 || this.#recorded >= LOOK_RECORDS) pause = STEP_PAUSE_MS;
    } catch (error) {
      this.#steps.failed(error);
    }
    this.#stepIn(pause);
  }
}
