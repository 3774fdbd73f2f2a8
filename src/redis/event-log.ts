import type { EventLog } from '../contracts/coordination/event-log.ts';
import type { Log } from '../contracts/log.ts';
import type { EventBatch, EventRecord } from '../model/event.ts';
import { EventRing, REMEMBERED_EVENTS } from '../model/event-ring.ts';
import type { Tenant } from '../model/tenant.ts';
import type { Keys } from './keys.ts';
import type { RedisLink, RedisPlace } from './redis-link.ts';

/** A claim's event costs no call of its own. */
const ADD_MS = 100;
const ADD_AGAIN_MS = 1_000;
const MOST_UNPUBLISHED = 10_000;
const ADDED_AT_ONCE = 100;
/** With followers, and without. */
const READ_MS = 100;
const READ_RARELY_MS = 1_000;
const READ_AT_ONCE = 500;

interface Unpublished {
  readonly event: EventRecord;
  readonly key: string;
  readonly told: ((id: number) => void) | undefined;
}

/**
 * Each replica copies the events into its own ring, so followers cost Redis nothing. Polling also
 * detects that the stream was lost.
 */
export class RedisEventLog implements EventLog {
  readonly #link: RedisLink;
  readonly #keys: Keys;
  readonly #log: Log;
  readonly #ring = new EventRing(0);
  #unpublished: Unpublished[] = [];
  #adding: Promise<void> | undefined;
  #addTimer: NodeJS.Timeout | undefined;
  #readTimer: NodeJS.Timeout | undefined;
  #followers = 0;
  #running = false;
  /** The running read, and one after it. */
  #reading: Promise<boolean> = Promise.resolve(false);
  #next: Promise<boolean> | undefined;
  readonly #loaded: Promise<void>;
  #setLoaded: () => void = () => undefined;

  constructor({ link, keys, log }: RedisPlace & { readonly log: Log }) {
    this.#link = link;
    this.#keys = keys;
    this.#log = log;
    this.#loaded = new Promise((resolve) => {
      this.#setLoaded = resolve;
    });
  }

  start(): void {
    if (this.#running) return;
    this.#running = true;
    this.#readAgain(0);
  }

  async stop(): Promise<void> {
    this.#running = false;
    clearTimeout(this.#readTimer);
    clearTimeout(this.#addTimer);
    await this.#adding;
    await this.#add();
    await this.#reading;
  }

  publishEvent(event: EventRecord, key: string, told?: (id: number) => void): void {
    if (this.#unpublished.length >= MOST_UNPUBLISHED) this.#unpublished.shift();
    this.#unpublished.push({ event, key, told });
    if (!this.#adding)
      this.#addTimer ??= setTimeout(() => {
        this.#addSoon();
      }, ADD_MS).unref();
  }

  async *followEvents(
    owner: Tenant | undefined,
    after: string | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<EventBatch, void, undefined> {
    this.#followers += 1;
    try {
      const here = this.#ring.last;
      const isFresh = await this.#readNow();
      await aborted(this.#loaded, signal);
      this.#readAgain(READ_MS);
      // After the gap.
      yield* this.#ring.follow(
        owner,
        after ?? (isFresh || here === 0 ? undefined : String(here)),
        signal,
      );
    } finally {
      this.#followers -= 1;
    }
  }

  #addSoon(): void {
    clearTimeout(this.#addTimer);
    this.#addTimer = undefined;
    this.#adding = this.#add().then((all) => {
      this.#adding = undefined;
      if (this.#unpublished.length > 0 && this.#running)
        this.#addTimer = setTimeout(
          () => {
            this.#addSoon();
          },
          all ? ADD_MS : ADD_AGAIN_MS,
        ).unref();
    });
  }

  /** False if some events could not be written. Never rejects. */
  async #add(): Promise<boolean> {
    while (this.#unpublished.length > 0) {
      const batch = this.#unpublished.slice(0, ADDED_AT_ONCE);
      try {
        const keys = [this.#keys.events, this.#keys.eventState, this.#keys.eventsSeen];
        const [, ...ids] = await this.#link.run('add_events', keys, [
          REMEMBERED_EVENTS,
          ...batch.flatMap(({ event, key }) => [key, JSON.stringify(event)]),
        ]);
        // The oldest events may have been dropped since.
        this.#unpublished = this.#unpublished.slice(this.#unpublished.indexOf(batch.at(-1)!) + 1);
        batch.forEach(({ told }, at) => {
          told?.(Number(ids[at]));
        });
      } catch (error) {
        this.#log.debug({ error, events: this.#unpublished.length }, 'events-not-published-yet');
        return false;
      }
    }
    return true;
  }

  #readAgain(delayMs: number): void {
    clearTimeout(this.#readTimer);
    if (!this.#running) return;
    this.#readTimer = setTimeout(() => {
      void this.#readNow().then(() => {
        this.#readAgain(this.#followers > 0 ? READ_MS : READ_RARELY_MS);
      });
    }, delayMs).unref();
  }

  /** False if Redis is unreachable. */
  #readNow(): Promise<boolean> {
    this.#next ??= this.#reading.then(() => {
      this.#next = undefined;
      this.#reading = this.#read();
      return this.#reading;
    });
    return this.#next;
  }

  async #read(): Promise<boolean> {
    try {
      for (let more = true; more;) {
        const keys = [this.#keys.events, this.#keys.eventState];
        const [, unknown, ...entries] = await this.#link.run('read_events', keys, [
          this.#ring.last,
          READ_AT_ONCE,
        ]);
        this.#ring.miss(Number(unknown));
        for (let at = 0; at < entries.length; at += 2) {
          const id = Number(entries[at]);
          if (id > this.#ring.last)
            this.#ring.add({ id, event: JSON.parse(String(entries[at + 1])) as EventRecord });
        }
        more = entries.length >= 2 * READ_AT_ONCE;
      }
      this.#setLoaded();
      return true;
    } catch {
      return false;
    }
  }
}

const aborted = async (work: Promise<void>, signal: AbortSignal): Promise<void> => {
  if (signal.aborted) return;
  let settle = (): void => undefined;
  const over = new Promise<void>((resolve) => {
    settle = resolve;
  });
  signal.addEventListener('abort', settle, { once: true });
  await Promise.race([work, over]);
  signal.removeEventListener('abort', settle);
};
