import type { Lease, Leases } from '../../contracts/coordination/leases.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import type { PoolEvent } from '../../machines/pool/events.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import { requestNow } from '../../model/request-scope.ts';
import type { PendingIntent } from '../../model/inspection.ts';

export interface ActorRuntimeDeps {
  readonly leases: Pick<Leases, 'lease'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

export class ActorRuntime {
  readonly clock: Clock;
  readonly log: Log;
  readonly outbox: Outbox;
  readonly measures: ActorMeasures;
  readonly #leases: Pick<Leases, 'lease'>;
  readonly #deadlines: Deadlines;
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

  onDue(prefix: string, due: (key: string, now: number) => void): void {
    this.#due.set(prefix, due);
  }

  /** Ms since the epoch; undefined clears it. */
  arm(prefix: string, key: string, at: number | undefined): void {
    this.#deadlines.arm(prefix + key, at);
  }

  get armed(): { readonly count: number; readonly next?: number } {
    return this.#deadlines.armed;
  }

  /** An ended lease if this replica does not hold it. */
  leaseOf(shard: number): Lease {
    return this.#leases.lease(shard) ?? LOST_LEASE;
  }

  stop(): void {
    this.#deadlines.stop();
  }
}

/** The outbox drops intents that carry it. */
const LOST_LEASE: Lease = { epoch: 0, held: () => false };

export class ActorMeasures {
  readonly #metrics: Metrics;

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  /** Ignores a new machine's first state, for which `before` is empty. */
  moved(kind: string, before: string, state: string): void {
    if (state !== before && before !== '')
      this.#metrics.count('sandpool_transitions_total', { kind, state });
  }

  threw(): void {
    this.#metrics.count('sandpool_actors_rebuilt_total', {});
  }

  late(ms: number): void {
    this.#metrics.observe('sandpool_deadline_late_seconds', {}, Math.max(ms, 0) / 1_000);
  }

  ready(ms: number): void {
    this.#metrics.observe('sandpool_start_seconds', {}, Math.max(ms, 0) / 1_000);
  }

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

interface Armed {
  readonly at: number;
  readonly key: string;
}

const SLICE_MS = 5;
const SLACK = 64;

/**
 * One heap with one timer. A deadline that moves later leaves an old entry for an early check. Due
 * keys come in slices of about 5 ms, so that a thousand don't block the event loop.
 */
export class Deadlines {
  readonly #clock: Clock;
  readonly #due: (key: string, now: number, at: number) => void;
  readonly #current = new Map<string, number>();
  #heap: Armed[] = [];
  #timer: { readonly at: number; readonly cancel: () => void } | undefined;
  #slice: NodeJS.Immediate | undefined;
  #stopped = false;

  constructor(clock: Clock, due: (key: string, now: number, at: number) => void) {
    this.#clock = clock;
    this.#due = due;
  }

  get size(): number {
    return this.#current.size;
  }

  get armed(): { readonly count: number; readonly next?: number } {
    return { count: this.#current.size, next: this.#timer?.at };
  }

  arm(key: string, at: number | undefined): void {
    const before = this.#current.get(key);
    if (before === at || this.#stopped) return;
    if (at === undefined) {
      this.#current.delete(key);
      return;
    }
    this.#current.set(key, at);
    this.#push({ at, key });
    if (this.#heap.length > 2 * this.#current.size + SLACK) this.#rebuild();
    this.#setTimer();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    if (this.#slice) clearImmediate(this.#slice);
    this.#current.clear();
    this.#heap = [];
  }

  #setTimer(): void {
    const next = this.#heap[0];
    if (!next || this.#slice || (this.#timer && this.#timer.at <= next.at)) return;
    this.#timer?.cancel();
    this.#timer = {
      at: next.at,
      cancel: this.#clock.at(next.at, () => {
        this.#timer = undefined;
        this.#handOut();
      }),
    };
  }

  #handOut(): void {
    this.#slice = undefined;
    if (this.#stopped) return;
    const began = this.#clock.now();
    for (let next = this.#heap[0]; next && next.at <= this.#clock.now(); next = this.#heap[0]) {
      this.#pop();
      if (this.#current.get(next.key) !== next.at) continue;
      this.#current.delete(next.key);
      this.#due(next.key, this.#clock.now(), next.at);
      if (this.#clock.now() - began > SLICE_MS) {
        this.#slice = setImmediate(() => this.#handOut());
        return;
      }
    }
    this.#setTimer();
  }

  #rebuild(): void {
    const living = [...this.#current].map(([key, at]) => ({ at, key }));
    this.#heap = living.sort((a, b) => a.at - b.at);
  }

  #push(entry: Armed): void {
    const heap = this.#heap;
    let i = heap.push(entry) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (heap[parent]!.at <= entry.at) break; // the parent is in range
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      // both in range
      if (child + 1 < heap.length && heap[child + 1]!.at < heap[child]!.at) child += 1;
      if (heap[child]!.at >= last.at) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
  }
}

export interface OutboxEntry {
  readonly name: string;
  readonly of?: string;
  readonly lease: Lease | undefined;
  readonly act: () => void | Promise<void>;
  /** Called instead of `act` if the lease has ended. */
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

export const OUTBOX_PARTS = ['supervisor', 'members', 'groups'] as const;
export type OutboxPart = (typeof OUTBOX_PARTS)[number];

export interface OutboxNumbers {
  readonly underWay: number;
  /** In ms; 0 if none is in progress. */
  readonly oldestMs: number;
  readonly dropped: number;
}

/**
 * Executes the machines' intents in order, after the event that caused them. Drops an intent whose
 * lease has ended.
 */
export class Outbox {
  readonly #log: Log;
  readonly #queue: OutboxEntry[] = [];
  readonly #running = new Map<Promise<void>, Running>();
  readonly #dropped = new Map<OutboxPart, number>();
  #draining = false;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Scans all running intents. */
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

  /** Includes the intents that they add. A nested call leaves the work to the outer one. */
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

  async drained(): Promise<void> {
    await Promise.all([...this.#running.keys()]);
  }

  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.keys());
  }

  /** Scans all running intents. */
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
      this.#log.info({ intent: name, epoch: lease.epoch }, 'intent-dropped');
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
        'intent-done',
      );
    try {
      const running = act();
      if (!running) return;
      const tracked: Promise<void> = running
        .catch((error: unknown) =>
          this.#log.error({ intent: name, error: String(error) }, 'intent-failed'),
        )
        .finally(() => this.#running.delete(tracked));
      this.#running.set(tracked, { entry, since: performance.now() });
    } catch (error) {
      this.#log.error({ intent: name, error: String(error) }, 'intent-failed');
    }
  }
}

const partOf = ({ name }: OutboxEntry): OutboxPart => {
  if (name.startsWith('member ') || name.startsWith('env ')) return 'members';
  return name.startsWith('group ') ? 'groups' : 'supervisor';
};
