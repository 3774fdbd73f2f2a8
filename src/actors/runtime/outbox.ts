import type { Lease } from '../../contracts/coordination/leases.ts';
import type { Log } from '../../contracts/log.ts';
import { requestNow } from '../../model/request-scope.ts';
import type { PendingIntent } from '../../model/inspection.ts';

export interface OutboxEntry {
  readonly name: string;
  /** The actor that asked; nobody looks for it where it is left out. */
  readonly of?: string;
  readonly lease: Lease | undefined;
  readonly act: () => void | Promise<void>;
  /** Instead of `act`, where the lease is over. */
  readonly dropped?: () => void;
}

interface Running {
  readonly entry: OutboxEntry;
  readonly since: number;
}

export interface OutboxReport {
  readonly queued: number;
  readonly running: Readonly<Record<string, { readonly count: number; readonly oldestMs: number }>>;
}

/** The parts of the outbox that reports and metrics show apart. */
export const OUTBOX_PARTS = ['supervisor', 'members', 'groups'] as const;
export type OutboxPart = (typeof OUTBOX_PARTS)[number];

export interface OutboxNumbers {
  /** How many are being carried out. */
  readonly underWay: number;
  /** For how long the oldest of them has been, in ms; 0 where there is none. */
  readonly oldestMs: number;
  /** How many were dropped, ever, because their lease was over. */
  readonly dropped: number;
}

/**
 * The intents that machines have put out, carried out in order after the event that caused them.
 * What carries a lease is dropped when the lease is no longer held. What runs on in the background
 * is kept track of, so that it can be drained.
 */
export class Outbox {
  readonly #log: Log;
  readonly #queue: OutboxEntry[] = [];
  /** With what each is and since when, by the monotonic clock; the oldest first. */
  readonly #running = new Map<Promise<void>, Running>();
  readonly #dropped = new Map<OutboxPart, number>();
  #draining = false;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Counts what of the part is under way. Searches all that is. */
  numbers(part: OutboxPart): OutboxNumbers {
    const now = performance.now();
    const since = [...this.#running.values()].flatMap(({ entry, since: at }) =>
      partOf(entry) === part ? [at] : [],
    );
    return {
      underWay: since.length,
      oldestMs: since[0] === undefined ? 0 : now - since[0],
      dropped: this.#dropped.get(part) ?? 0,
    };
  }

  put(entry: OutboxEntry): void {
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

  /** Lists what that actor asked for and is under way. Searches all that is. */
  pendingOf(actor: string): readonly PendingIntent[] {
    const now = performance.now();
    return [...this.#running.values()]
      .filter(({ entry }) => entry.of === actor)
      .map(({ entry, since }) => ({
        intent: entry.name,
        forMs: Math.round(now - since),
        epoch: entry.lease?.epoch,
      }));
  }

  /**
   * Tells what of the part is under way: how many of each name, and how long the oldest has been.
   */
  report(part: OutboxPart): OutboxReport {
    const now = performance.now();
    const names = new Map<string, { count: number; oldestMs: number }>();
    for (const { entry, since } of this.#running.values()) {
      if (partOf(entry) !== part) continue;
      const { count, oldestMs } = names.get(entry.name) ?? { count: 0, oldestMs: 0 };
      const forMs = Math.round(now - since);
      names.set(entry.name, { count: count + 1, oldestMs: Math.max(oldestMs, forMs) });
    }
    return {
      queued: this.#queue.filter((entry) => partOf(entry) === part).length,
      running: Object.fromEntries(names),
    };
  }

  #carryOut(entry: OutboxEntry): void {
    const { name, of, lease, act, dropped } = entry;
    if (lease && !lease.held()) {
      this.#log.info({ intent: name, epoch: lease.epoch }, 'intent dropped: its lease is over');
      const part = partOf(entry);
      this.#dropped.set(part, (this.#dropped.get(part) ?? 0) + 1);
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

const partOf = ({ name }: OutboxEntry): OutboxPart => {
  if (name.startsWith('member ') || name.startsWith('env ')) return 'members';
  return name.startsWith('group ') ? 'groups' : 'supervisor';
};
