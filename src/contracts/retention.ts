import type { ByteBounds } from '../lib/byte-shares.ts';
import type { Clock } from './clock.ts';
import type { Metrics } from './metrics.ts';

/** Describes what every history is told. */
export interface RetentionOptions {
  readonly clock: Clock;
  /** How long a finished sandbox is kept, in ms after it ended. */
  readonly retentionMs: number;
  /** Says what finished sandboxes may take; beyond it they are forgotten before their time. */
  readonly bounds: ByteBounds;
  readonly metrics: Metrics;
}

export interface RetentionSteps {
  /** Forgets some of what ended before the moment; answers whether there may be more. */
  forget(before: number): Promise<boolean>;
  /**
   * Forgets, of the tenant with most, some that ended first, where that tenant or all together have
   * more than the bounds; returns how many.
   */
  trim(bounds: ByteBounds): Promise<number>;
  /** A step rejected; the next one comes in its time. */
  failed(error: unknown): void;
}

const STEP_PAUSE_MS = 50;
export const SWEEP_PAUSE_MS = 60_000;
/** Records after which it is looked sooner, however fast they come. */
const LOOK_RECORDS = 200;

/**
 * Has a history forget what is older than retention, or more than the bounds, from `start()` to
 * `stop()`: one step, the next one soon while there is more, else in a minute, or after some 200
 * records.
 */
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

  /** Hears of each record. */
  recorded(): void {
    this.#recorded += 1;
    if (this.#recorded !== LOOK_RECORDS || !this.#cancel) return; // else a step is under way
    this.#cancel();
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
