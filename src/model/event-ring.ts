import type { EventBatch, NumberedEvent } from './event.ts';
import { sameTenant, tenantKey, type Tenant } from './tenant.ts';

/** Over all tenants. */
export const REMEMBERED_EVENTS = 8_192;
/** Numbers grow over restarts too. */
export const EVENT_NUMBERS_PER_MS = 1_000;
const ALL = '';

export class EventRing {
  readonly #ring: NumberedEvent[] = [];
  #at = 0;
  #forgotten: number;
  #last: number;
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Events up to `forgotten` are unknown. */
  constructor(forgotten: number) {
    this.#forgotten = forgotten;
    this.#last = forgotten;
  }

  get last(): number {
    return this.#last;
  }

  /** Numbers must grow. */
  add(numbered: NumberedEvent): void {
    this.#last = numbered.id;
    this.#forgotten = Math.max(this.#forgotten, this.#ring[this.#at]?.id ?? 0);
    this.#ring[this.#at] = numbered;
    this.#at = (this.#at + 1) % REMEMBERED_EVENTS;
    if (this.#waiting.size === 0) return;
    this.#wake(tenantKey(numbered.event.owner));
    this.#wake(ALL);
  }

  /** Marks events up to this number as incomplete for ever. */
  miss(upTo: number): void {
    if (upTo <= this.#forgotten) return;
    this.#forgotten = upTo;
    this.#last = Math.max(this.#last, upTo);
    for (const key of [...this.#waiting.keys()]) this.#wake(key);
  }

  /**
   * Begins after the number, or now. Reads no faster than its consumer, and reports evicted events
   * as `missed`. An invalid or future number counts as evicted.
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
