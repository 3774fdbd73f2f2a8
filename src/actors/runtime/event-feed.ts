import { randomUUID } from 'node:crypto';
import type { Clock } from '../../contracts/clock.ts';
import type { Coordination } from '../../contracts/coordination.ts';
import type { History } from '../../contracts/history.ts';
import type { Log } from '../../contracts/log.ts';
import type { EventBatch, EventRecord, NumberedEvent } from '../../model/event.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { Tenant } from '../../model/tenant.ts';

/** Never throws or waits, so that claims are not delayed. */
export interface EventSink {
  note(event: EventRecord, noted: Noted): void;
  lead(shard: number): void;
}

export interface Noted {
  /**
   * Equal on every replica. Undefined if replicas see different events; then only the leader
   * publishes its own.
   */
  readonly key: string | undefined;
  readonly shard: number;
  readonly ours: boolean;
  /** For the sandbox's or pool's event list, if no record shows it. */
  readonly kept: boolean;
}

export interface EventFeedDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly history: Pick<History, 'recordEvents' | 'eventsOf' | 'eventsOfPool'>;
  readonly coordination: Pick<Coordination, 'publishEvent' | 'followEvents' | 'ended'>;
}

const MOST_UNWRITTEN = 10_000;
/** Takes a fraction of a millisecond of the thread that claims use. */
const WRITTEN_AT_ONCE = 32;
export const WRITE_DELAY_MS = 500;
/** At shutdown: for publishing the last events, and for storing all. */
const LAST_TOLD_MS = 500;
const LAST_WRITTEN_MS = 1_000;
/** In ms. Longer than a shard stays without a leader. */
export const HELD_MS = 15_000;
const MOST_HELD = 4_096;

interface Held extends Noted {
  readonly event: EventRecord;
  readonly at: number;
}

/**
 * All replicas record events, but only the shard's leader publishes them; a new leader publishes
 * what the previous one missed. A crash may lose the last half second.
 */
export class EventFeed implements EventSink {
  readonly #deps: EventFeedDeps;
  #held: Held[] = [];
  #unwritten: NumberedEvent[] = [];
  #cancelWrite: (() => void) | undefined;
  #writing: Promise<void> = Promise.resolve();
  /** Events to store without an id, which their publication assigns. */
  #unreported = 0;
  #allTold: () => void = () => undefined;

  constructor(deps: EventFeedDeps) {
    this.#deps = deps;
  }

  note(event: EventRecord, noted: Noted): void {
    if (noted.ours) this.#tell(event, noted);
    else if (noted.key !== undefined) this.#hold({ ...noted, event, at: this.#deps.clock.now() });
  }

  lead(shard: number): void {
    const held = this.#held;
    this.#held = held.filter((each) => each.shard !== shard);
    const since = this.#deps.clock.now() - HELD_MS;
    for (const each of held)
      if (each.shard === shard && each.at >= since) this.#tell(each.event, each);
  }

  async eventsOf(sandboxId: InstanceId): Promise<readonly EventRecord[]> {
    await this.flush();
    return await this.#deps.history.eventsOf(sandboxId);
  }

  async eventsOfPool(namespace: string, name: string): Promise<readonly EventRecord[]> {
    await this.flush();
    return await this.#deps.history.eventsOfPool(namespace, name);
  }

  /** See EventLog. */
  follow(
    owner: Tenant | undefined,
    after: string | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<EventBatch, void, undefined> {
    return this.#deps.coordination.followEvents(owner, after, signal);
  }

  /** Never rejects. */
  async flush(): Promise<void> {
    this.#cancelWrite?.();
    this.#cancelWrite = undefined;
    this.#writing = this.#writing.then(() => this.#writeAll());
    await this.#writing;
  }

  async stop(): Promise<void> {
    const allTold = new Promise<void>((resolve) => {
      this.#allTold = resolve;
      if (this.#unreported === 0) resolve();
    });
    await this.#within(LAST_TOLD_MS, allTold);
    await this.#within(LAST_WRITTEN_MS, this.flush());
  }

  async #within(ms: number, work: Promise<void>): Promise<void> {
    const { clock } = this.#deps;
    let callOff = (): void => undefined;
    const late = new Promise<void>((resolve) => {
      callOff = clock.at(clock.now() + ms, resolve);
    });
    await Promise.race([work, late]);
    callOff();
  }

  #hold(held: Held): void {
    if (this.#held.length >= MOST_HELD || (this.#held[0]?.at ?? held.at) < held.at - 2 * HELD_MS) {
      this.#held = this.#held
        .slice(this.#held.length >> 1)
        .filter(({ at }) => at >= held.at - HELD_MS);
    }
    this.#held.push(held);
  }

  #tell(event: EventRecord, noted: Noted): void {
    if (noted.kept) this.#unreported += 1;
    if (event.reason !== 'Completed' || event.end.reason !== 'lost')
      return this.#publish(event, noted);
    // Another replica may have handled the request to end it, and knows the reason.
    this.#deps.coordination
      .ended(event.sandboxId ?? '')
      .catch(() => undefined)
      .then((end) => {
        this.#publish(end ? { ...event, end } : event, noted);
      })
      .catch((error: unknown) => {
        this.#deps.log.error({ error }, 'event-not-published');
      });
  }

  #publish(event: EventRecord, { key, kept }: Noted): void {
    this.#deps.coordination.publishEvent(
      event,
      key ?? randomUUID(),
      kept
        ? (id) => {
            this.#unreported -= 1;
            this.#write({ id, event });
            if (this.#unreported === 0) this.#allTold();
          }
        : undefined,
    );
  }

  #write(numbered: NumberedEvent): void {
    const { clock } = this.#deps;
    if (this.#unwritten.length >= MOST_UNWRITTEN) return;
    this.#unwritten.push(numbered);
    this.#cancelWrite ??= clock.at(clock.now() + WRITE_DELAY_MS, () => {
      void this.flush();
    });
  }

  async #writeAll(): Promise<void> {
    while (this.#unwritten.length > 0) {
      const batch = this.#unwritten.splice(0, WRITTEN_AT_ONCE);
      try {
        await this.#deps.history.recordEvents(batch);
      } catch (error) {
        this.#deps.log.warn({ error, events: batch.length }, 'events-not-stored');
      }
    }
  }
}

export const silentEvents: EventSink = { note: () => undefined, lead: () => undefined };
