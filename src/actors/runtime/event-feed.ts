import { randomUUID } from 'node:crypto';
import type { Clock } from '../../contracts/clock.ts';
import type { Coordination } from '../../contracts/coordination.ts';
import type { History } from '../../contracts/history.ts';
import type { Log } from '../../contracts/log.ts';
import type { EventBatch, EventRecord, NumberedEvent } from '../../model/event.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { Tenant } from '../../model/tenant.ts';

/** Notes what happens. Never throws, never waits: a claim does not notice it. */
export interface EventSink {
  note(event: EventRecord, noted: Noted): void;
  /** This replica leads the shard from now on. */
  lead(shard: number): void;
}

export interface Noted {
  /**
   * Names it, alike on each replica that notes it; undefined where each sees one of its own: then
   * the leader alone tells it.
   */
  readonly key: string | undefined;
  /** Shard of the pool. */
  readonly shard: number;
  /** This replica tells it: it leads the shard, or did it itself. Else somebody else does. */
  readonly ours: boolean;
  /** It is to be found in the sandbox's or pool's own list later, and nothing else shows it. */
  readonly kept: boolean;
}

export interface EventFeedDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly history: Pick<History, 'recordEvents' | 'eventsOf' | 'eventsOfPool'>;
  readonly coordination: Pick<Coordination, 'publishEvent' | 'followEvents' | 'ended'>;
}

/** Kept ones that wait to be written. */
const MOST_UNWRITTEN = 10_000;
/** Written at once: a fraction of a millisecond of the thread that claims wait for. */
const WRITTEN_AT_ONCE = 32;
export const WRITE_DELAY_MS = 500;
/** At the end: for those to be told that were noted last, and for all to be written. */
const LAST_TOLD_MS = 500;
const LAST_WRITTEN_MS = 1_000;
/** Longer than a dead leader's shard stays without one. */
export const HELD_MS = 15_000;
const MOST_HELD = 4_096;

interface Held extends Noted {
  readonly event: EventRecord;
  readonly at: number;
}

/**
 * Tells what happens to those who follow, on every replica, and written behind, in batches, where
 * it is kept. Every replica notes what it sees, and the shard's leader tells it; who leads next
 * tells what the last one did not come to. What was noted in the last half second before a crash
 * may be missing from a sandbox's list; the records themselves show the rest.
 */
export class EventFeed implements EventSink {
  readonly #deps: EventFeedDeps;
  /** Events of other leaders' shards, the oldest first. */
  #held: Held[] = [];
  #unwritten: NumberedEvent[] = [];
  #cancelWrite: (() => void) | undefined;
  #writing: Promise<void> = Promise.resolve();
  /** Counts those that are to be kept and were not told yet: then they have a number. */
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

  /** Gives what was kept of one sandbox, the oldest first. */
  async eventsOf(sandboxId: InstanceId): Promise<readonly EventRecord[]> {
    await this.flush();
    return await this.#deps.history.eventsOf(sandboxId);
  }

  /** Returns what was kept of the pools of that name, the oldest first. */
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

  /** Writes out what is kept. Never rejects. */
  async flush(): Promise<void> {
    this.#cancelWrite?.();
    this.#cancelWrite = undefined;
    this.#writing = this.#writing.then(() => this.#writeAll());
    await this.#writing;
  }

  /** Writes out what was noted, also what is not told yet; in 1.5 s or not at all. */
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
    // Another replica may have been asked to end it, and knows why.
    this.#deps.coordination
      .ended(event.sandboxId ?? '')
      .catch(() => undefined)
      .then((end) => {
        this.#publish(end ? { ...event, end } : event, noted);
      })
      .catch((error: unknown) => {
        this.#deps.log.error({ error }, 'event not published');
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
        this.#deps.log.warn({ error, events: batch.length }, 'events not stored');
      }
    }
  }
}

/** A sink for where nobody asks what happens. */
export const silentEvents: EventSink = { note: () => undefined, lead: () => undefined };
