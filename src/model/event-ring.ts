import type { EventBatch, NumberedEvent } from './event.ts';
import { sameTenant, tenantKey, type Tenant } from './tenant.ts';

/** Events that followers can go back to, of all tenants together. */
export const REMEMBERED_EVENTS = 8_192;
/** Numbers a millisecond: they grow over restarts too. */
export const EVENT_NUMBERS_PER_MS = 1_000;
const ALL = '';

/** The last events in the order of their numbers, for those who follow them. */
export class EventRing {
  readonly #ring: NumberedEvent[] = [];
  #at = 0;
  /** Number of the newest event that is no longer remembered. */
  #forgotten: number;
  #last: number;
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Begins empty: events with a number up to `forgotten` are not known here. */
  constructor(forgotten: number) {
    this.#forgotten = forgotten;
    this.#last = forgotten;
  }

  /** The highest number. */
  get last(): number {
    return this.#last;
  }

  /** Its number is higher than all before. */
  add(numbered: NumberedEvent): void {
    this.#last = numbered.id;
    this.#forgotten = Math.max(this.#forgotten, this.#ring[this.#at]?.id ?? 0);
    this.#ring[this.#at] = numbered;
    this.#at = (this.#at + 1) % REMEMBERED_EVENTS;
    if (this.#waiting.size === 0) return;
    this.#wake(tenantKey(numbered.event.owner));
    this.#wake(ALL);
  }

  /** Notes that some events up to this number are not known, and never will be. */
  miss(upTo: number): void {
    if (upTo <= this.#forgotten) return;
    this.#forgotten = upTo;
    this.#last = Math.max(this.#last, upTo);
    for (const key of [...this.#waiting.keys()]) this.#wake(key);
  }

  /**
   * A tenant's events, or everybody's, after the number given as text, or from now on; ends at an
   * abort. Reads no faster than it is asked: what is forgotten meanwhile is `missed`. What is no
   * number, or was not given yet, counts as forgotten.
   */
  follow(
    owner: Tenant | undefined,
    after: string | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<EventBatch, void, undefined> {
    if (after === undefined) return this.#followFrom(this.#last, owner, signal);
    const asked = /^\d{1,16}$/.test(after) ? Number(after) : 0;
    return this.#follow(owner, asked > this.#last ? 0 : asked, signal);
  }

  async *#followFrom(
    begins: number,
    owner: Tenant | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<EventBatch, void, undefined> {
    yield { events: [], missed: false, begins };
    yield* this.#follow(owner, begins, signal);
  }

  async *#follow(
    owner: Tenant | undefined,
    after: number,
    signal: AbortSignal,
  ): AsyncGenerator<EventBatch, void, undefined> {
    let at = after;
    while (!signal.aborted) {
      const missed = at < this.#forgotten;
      const events = this.#since(owner, at);
      at = this.#last;
      if (missed || events.length > 0) yield { events, missed };
      else await this.#next(owner, signal);
    }
  }

  #since(owner: Tenant | undefined, after: number): readonly NumberedEvent[] {
    const events: NumberedEvent[] = [];
    for (let back = 1; back <= this.#ring.length; back += 1) {
      const numbered = this.#ring[(this.#at - back + REMEMBERED_EVENTS) % REMEMBERED_EVENTS];
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

  #wake(key: string): void {
    for (const wake of [...(this.#waiting.get(key) ?? [])]) wake();
  }
}
