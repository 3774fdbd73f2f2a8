import type { Metrics } from '../../contracts/metrics.ts';
import type { PoolEvent } from '../../machines/pool/events.ts';

/** Counts what state machines do, for the metrics. */
export class ActorMeasures {
  readonly #metrics: Metrics;

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  /** A machine has moved; the first state of a new one, `before` empty, does not count. */
  moved(kind: string, before: string, state: string): void {
    if (state !== before && before !== '')
      this.#metrics.count('sandpool_transitions_total', { kind, state });
  }

  /** One threw, and is made again. */
  threw(): void {
    this.#metrics.count('sandpool_actors_rebuilt_total', {});
  }

  /** Milliseconds after its moment. */
  late(ms: number): void {
    this.#metrics.observe('sandpool_deadline_late_seconds', {}, Math.max(ms, 0) / 1_000);
  }

  /** An instance is ready to claim, so many milliseconds after it was ordered. */
  ready(ms: number): void {
    this.#metrics.observe('sandpool_start_seconds', {}, Math.max(ms, 0) / 1_000);
  }

  /** Counts how a start went, and the event that showed it. */
  start({ type }: PoolEvent, event: string): void {
    if (type === 'START_DEFERRED') this.#metrics.count('sandpool_starts_deferred_total', {});
    if (type === 'START_FAILED')
      this.#metrics.count('sandpool_start_failures_total', { cause: causeOf(event) });
  }
}

const causeOf = (event: string): string => {
  switch (event) {
    case 'LAUNCH_REFUSED':
      return 'refused';
    case 'DEADLINE':
      return 'timeout';
    default:
      return 'died';
  }
};
