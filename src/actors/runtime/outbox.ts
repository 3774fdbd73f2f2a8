import type { Lease } from '../../contracts/coordination.ts';
import type { Log } from '../../contracts/log.ts';
import { requestNow } from '../../model/request-scope.ts';
import type { PendingIntent } from '../../model/inspection.ts';

interface Entry {
  readonly name: string;
  /** The actor that asked; nobody looks for it where it is left out. */
  readonly of?: string;
  readonly lease: Lease | undefined;
  readonly act: () => void | Promise<void>;
  /** Instead of `act`, where the lease is over. */
  readonly dropped?: () => void;
}

interface Running {
  readonly entry: Entry;
  readonly since: number;
}

export interface OutboxReport {
  readonly queued: number;
  readonly running: Readonly<Record<string, { readonly count: number; readonly oldestMs: number }>>;
}

/**
 * The intents that machines have put out, carried out in order after the event that caused them.
 * What carries a lease is dropped when the lease is no longer held. What runs on in the background
 * is kept track of, so that it can be drained.
 */
export class Outbox {
  readonly #log: Log;
  readonly #queue: Entry[] = [];
  /** With what each is and since when, by the monotonic clock; the oldest first. */
  readonly #running = new Map<Promise<void>, Running>();
  #dropped = 0;
  #draining = false;

  constructor(log: Log) {
    this.#log = log;
  }

  /** How many are being carried out. */
  get underWay(): number {
    return this.#running.size;
  }

  /** For how long the oldest of them has been, in ms; 0 where there is none. */
  get oldestMs(): number {
    for (const { since } of this.#running.values()) return performance.now() - since;
    return 0;
  }

  /** How many were dropped, ever, because their lease was over. */
  get dropped(): number {
    return this.#dropped;
  }

  put(entry: Entry): void {
    this.#queue.push(entry);
  }

  /**
   * Carries out all that is there, and what that adds. Not re-entrant: an inner call leaves it to
   * the outer one.
   */
  drain(): void {
    if (this.#draining) return;
    this.#draining = true;
    try {
      for (let entry = this.#queue.shift(); entry; entry = this.#queue.shift())
        this.#carryOut(entry);
    } finally {
      this.#draining = false;
    }
  }

  /** Resolves once what is under way now is done. */
  async drained(): Promise<void> {
    await Promise.all([...this.#running.keys()]);
  }

  /** Resolves once nothing is under way. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.keys());
  }

  /** What that actor asked for and is under way. Searches all that is. */
  pendingOf(actor: string): readonly PendingIntent[] {
    const now = performance.now();
    return [...this.#running.values()]
      .filter(({ entry }) => entry.of === actor)
      .map(({ entry, since }) => ({
        intent: entry.name,
        forMs: Math.round(now - since),
        ...(entry.lease ? { epoch: entry.lease.epoch } : {}),
      }));
  }

  /** What is under way in all: how many of each name, and how long the oldest of them has been. */
  report(): OutboxReport {
    const now = performance.now();
    const names = new Map<string, { count: number; oldestMs: number }>();
    for (const {
      entry: { name },
      since,
    } of this.#running.values()) {
      const { count, oldestMs } = names.get(name) ?? { count: 0, oldestMs: 0 };
      names.set(name, { count: count + 1, oldestMs: Math.max(oldestMs, Math.round(now - since)) });
    }
    return { queued: this.#queue.length, running: Object.fromEntries(names) };
  }

  #carryOut(entry: Entry): void {
    const { name, of, lease, act, dropped } = entry;
    if (lease && !lease.held()) {
      this.#log.info({ intent: name, epoch: lease.epoch }, 'intent dropped: its lease is over');
      this.#dropped += 1;
      dropped?.();
      return;
    }
    if (this.#log.detailed)
      this.#log.trace(
        {
          intent: name,
          ...(of === undefined ? {} : { of }),
          ...(lease ? { epoch: lease.epoch } : {}),
          ...requestNow(),
        },
        'intent',
      );
    try {
      const running = act();
      if (!running) return;
      const tracked: Promise<void> = running
        .catch((error: unknown) =>
          this.#log.error({ intent: name, error: String(error) }, 'intent failed'),
        )
        .finally(() => this.#running.delete(tracked));
      this.#running.set(tracked, { entry, since: performance.now() });
    } catch (error) {
      this.#log.error({ intent: name, error: String(error) }, 'intent failed');
    }
  }
}
