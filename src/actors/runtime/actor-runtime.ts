import type { Clock } from '../../contracts/clock.ts';
import type { Lease, Leases } from '../../contracts/coordination/leases.ts';
import type { Log } from '../../contracts/log.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import { ActorMeasures } from './actor-measures.ts';
import { Deadlines } from './deadlines.ts';
import { Outbox } from './outbox.ts';

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
