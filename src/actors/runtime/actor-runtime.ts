import type { Clock } from '../../contracts/clock.ts';
import type { Lease, Leases } from '../../contracts/coordination/leases.ts';
import type { Log } from '../../contracts/log.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import { Deadlines } from './deadlines.ts';
import { Outbox } from './outbox.ts';
import type { PoolEvent } from '../../machines/pool/events.ts';

export interface ActorRuntimeDeps {
  readonly leases: Pick<Leases, 'lease'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Holds what the hosts of all kinds share on one replica: one outbox and one heap of deadlines. */
export class ActorRuntime {
  readonly clock: Clock;
  readonly log: Log;
  readonly outbox: Outbox;
  readonly measures: ActorMeasures;
  readonly #leases: Pick<Leases, 'lease'>;
  readonly #deadlines: Deadlines;
  /** By the first character of a deadline's key. */
  readonly #due = new Map<string, (key: string, now: number) => void>();

  constructor({ leases, clock, log, metrics }: ActorRuntimeDeps) {
    this.clock = clock;
    this.log = log;
    this.outbox = new Outbox(log);
    this.measures = new ActorMeasures(metrics);
    this.#leases = leases;
    this.#deadlines = new Deadlines(clock, (key, now, at) => {
      this.measures.late(now - at);
      this.#due.get(key.charAt(0))?.(key.slice(1), now);
    });
  }

  /** Has `due` called for the deadlines whose keys begin with this one character. */
  onDue(prefix: string, due: (key: string, now: number) => void): void {
    this.#due.set(prefix, due);
  }

  /** Sets the one deadline of this prefix and key (ms since the epoch); undefined: none. */
  arm(prefix: string, key: string, at: number | undefined): void {
    this.#deadlines.arm(prefix + key, at);
  }

  /** Counts the deadlines that are armed; `next`: when the next one is due (ms since the epoch). */
  get armed(): { readonly count: number; readonly next?: number } {
    return this.#deadlines.armed;
  }

  /** The lease on the shard, one that is over where this replica holds none. */
  leaseOf(shard: number): Lease {
    return this.#leases.lease(shard) ?? LOST_LEASE;
  }

  /** No deadline is due any more. */
  stop(): void {
    this.#deadlines.stop();
  }
}

/** A lease that no replica holds: an intent that carries it is dropped. */
const LOST_LEASE: Lease = { epoch: 0, held: () => false };

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
