import type { Clock } from '../contracts/clock.ts';
import type { History } from '../contracts/history.ts';
import type { Log } from '../contracts/log.ts';
import type { EventRecord } from '../model/event.ts';
import type { InstanceId } from '../model/identifiers.ts';
import { sameTenant, tenantKey, type Tenant } from '../model/tenant.ts';

/** Where what happens is told. Never throws, never waits: a claim does not notice it. */
export interface EventSink {
  /** `kept`: it is to be found in the sandbox's own list later, and nothing else shows it. */
  note(event: EventRecord, kept: boolean): void;
}

/** An event and its place in the order of all. */
export interface NumberedEvent {
  readonly id: number;
  readonly event: EventRecord;
}

export interface EventBatch {
  readonly events: readonly NumberedEvent[];
  /** Some before these are not known any more. */
  readonly missed: boolean;
}

export interface EventFeedDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly history: Pick<History, 'recordEvents' | 'eventsOf'>;
}

/** Events that followers can go back to, of all tenants together. */
export const REMEMBERED = 8_192;
/** Kept ones that wait to be written. */
const MOST_UNWRITTEN = 10_000;
/** Written at once: a fraction of a millisecond of the thread that claims wait for. */
const WRITTEN_AT_ONCE = 32;
export const WRITE_DELAY_MS = 500;
/** Numbers a millisecond: they grow over restarts too. */
const PER_MS = 1_000;
const ALL = '';

/**
 * What happens, in order: remembered in a ring for those who follow, and written behind, in batches, where it is kept. What
 * was noted in the last half second before a crash may be lost; the records themselves show the rest.
 */
export class EventFeed implements EventSink {
  readonly #deps: EventFeedDeps;
  readonly #ring: NumberedEvent[] = [];
  /** Of the newest that is no longer remembered. */
  #forgotten: number;
  #last: number;
  #at = 0;
  readonly #waiting = new Map<string, Set<() => void>>();
  #unwritten: NumberedEvent[] = [];
  #cancelWrite: (() => void) | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(deps: EventFeedDeps) {
    this.#deps = deps;
    this.#last = deps.clock.now() * PER_MS;
    this.#forgotten = this.#last;
  }

  note(event: EventRecord, kept: boolean): void {
    this.#last = Math.max(this.#last + 1, event.at * PER_MS);
    const numbered = { id: this.#last, event };
    this.#forgotten = this.#ring[this.#at]?.id ?? this.#forgotten;
    this.#ring[this.#at] = numbered;
    this.#at = (this.#at + 1) % REMEMBERED;
    if (kept) this.#write(numbered);
    if (this.#waiting.size > 0) this.#wake(event.owner);
  }

  /** What was kept of one sandbox, the oldest first. */
  async eventsOf(sandboxId: InstanceId): Promise<readonly EventRecord[]> {
    await this.flush();
    return await this.#deps.history.eventsOf(sandboxId);
  }

  /**
   * A tenant's events, or everybody's, after the one with the number `after`, or from now on; ends at an abort. Reads no
   * faster than it is asked: what is forgotten meanwhile is `missed`.
   */
  follow(owner: Tenant | undefined, after: string | undefined, signal: AbortSignal): AsyncGenerator<EventBatch, void, undefined> {
    const asked = after === undefined ? this.#last : /^\d{1,16}$/.test(after) ? Number(after) : 0;
    // A number that was not given yet is of another daemon's time.
    return this.#follow(owner, asked > this.#last ? 0 : asked, signal);
  }

  async *#follow(owner: Tenant | undefined, after: number, signal: AbortSignal): AsyncGenerator<EventBatch, void, undefined> {
    let at = after;
    while (!signal.aborted) {
      const missed = at < this.#forgotten;
      const events = this.#since(owner, at);
      at = this.#last;
      if (missed || events.length > 0) yield { events, missed };
      else await this.#next(owner, signal);
    }
  }

  /** Writes out what is kept. Never rejects. */
  async flush(): Promise<void> {
    this.#cancelWrite?.();
    this.#cancelWrite = undefined;
    this.#writing = this.#writing.then(() => this.#writeAll());
    await this.#writing;
  }

  #since(owner: Tenant | undefined, after: number): readonly NumberedEvent[] {
    const events: NumberedEvent[] = [];
    for (let back = 1; back <= this.#ring.length; back += 1) {
      const numbered = this.#ring[(this.#at - back + REMEMBERED) % REMEMBERED];
      if (!numbered || numbered.id <= after) break;
      if (!owner || sameTenant(owner, numbered.event.owner)) events.push(numbered);
    }
    return events.reverse();
  }

  #next(owner: Tenant | undefined, signal: AbortSignal): Promise<void> {
    const key = owner ? tenantKey(owner) : ALL;
    const waiting = this.#waiting.get(key) ?? new Set<() => void>();
    this.#waiting.set(key, waiting);
    return new Promise((resolve) => {
      const wake = (): void => {
        waiting.delete(wake);
        if (waiting.size === 0 && this.#waiting.get(key) === waiting) this.#waiting.delete(key);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      waiting.add(wake);
      signal.addEventListener('abort', wake, { once: true });
    });
  }

  #wake(owner: Tenant): void {
    for (const key of [tenantKey(owner), ALL]) for (const wake of [...this.#waiting.get(key) ?? []]) wake();
  }

  #write(numbered: NumberedEvent): void {
    const { clock } = this.#deps;
    if (this.#unwritten.length >= MOST_UNWRITTEN) return;
    this.#unwritten.push(numbered);
    this.#cancelWrite ??= clock.at(clock.now() + WRITE_DELAY_MS, () => { void this.flush(); });
  }

  async #writeAll(): Promise<void> {
    while (this.#unwritten.length > 0) {
      const batch = this.#unwritten.splice(0, WRITTEN_AT_ONCE);
      try {
        await this.#deps.history.recordEvents(batch);
      } catch (error) {
        this.#deps.log.warn({ error, events: batch.length }, 'events not kept');
      }
    }
  }
}

/** Where nobody asks what happens. */
export const NO_EVENTS: EventSink = { note: () => undefined };
