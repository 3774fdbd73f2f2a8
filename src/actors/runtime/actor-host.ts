import type { ActorKind as KindName, PendingIntent } from '../../model/inspection.ts';
import type { ActorRuntime, OutboxEntry } from './actor-runtime.ts';
import { Rebuilds } from './rebuilds.ts';
import { TransitionHistory } from './transition-history.ts';
import type { StateValue } from 'xstate';
import type { Clock } from '../../contracts/clock.ts';

export interface HostedSnapshot {
  readonly status: 'active' | 'done' | 'error' | 'stopped';
  readonly error: unknown;
}

/** The part of an XState actor that its host uses. */
export interface HostedActor<Snapshot, Event, Intent> {
  getSnapshot(): Snapshot;
  send(event: Event): void;
  start(): unknown;
  stop(): unknown;
  on(type: '*', put: (intent: Intent) => void): unknown;
  subscribe(observer: { readonly error: () => void }): unknown;
}

/** How an actor came to be, or what it was sent. */
export type Cause<Event> = Event | { readonly type: 'FOUND' | 'ORDERED' | 'THREW' };

/** Describes what one event did. `before` is undefined for an actor that was just made. */
export interface Change<Snapshot, Event> {
  readonly before: Snapshot | undefined;
  readonly after: Snapshot;
  readonly event: Cause<Event>;
  /** The state after it, in full. */
  readonly path: string;
}

/** All that tells the actors of one kind from those of another. */
export interface ActorKind<Snapshot extends HostedSnapshot, Event, Intent, Input> {
  readonly name: KindName;
  /** Says what the log calls it. */
  readonly entity: string;
  /** One character, before the keys of its deadlines and intents. */
  readonly prefix: string;

  /** Makes an actor that is not started. */
  create(input: Input): HostedActor<Snapshot, Event, Intent>;
  /** Has an actor hear nothing any more; it is stopped where this is left out. */
  dispose?(actor: HostedActor<Snapshot, Event, Intent>): void;

  /** The state in full, as `stopping.releasing`. */
  pathOf(snapshot: Snapshot): string;
  /** The state as the metrics count it; the path where this is left out. */
  countedAs?(snapshot: Snapshot): string;
  /** Tells how it is listed: by a group, and in that by an age. Neither ever changes. */
  listed(key: string, snapshot: Snapshot): { readonly group: string; readonly born: number };
  /** A word on the event for the transition history; often none. */
  causeOf(event: Cause<Event>): string;

  /** Whether its entity is no more. */
  isOver(snapshot: Snapshot): boolean;
  /** In ms since the epoch. */
  deadlineOf(snapshot: Snapshot): number | undefined;
  /** Called at the deadline. */
  due(key: string, now: number): void;

  /** Tells an actor that this replica decides for it, or no more. Some are not told. */
  readonly leading?: {
    shardOf(key: string): number;
    lead(now: number): Event;
    readonly follow: Event;
  };

  /** Tells how an intent is carried out; undefined: there is nothing to do. */
  intent(key: string, intent: Intent): Omit<OutboxEntry, 'of'> | undefined;
  /**
   * Called after each event, and once an actor was made. One that is over is not found any more.
   */
  changed(key: string, change: Change<Snapshot, Event>): void;
  /**
   * Called once an actor threw, and is not found any more; without a snapshot where it threw over
   * what it was made of.
   */
  threw?(key: string, last: Snapshot | undefined): void;
  /** Makes the actor anew from what is known. Where it rejects it is called again later. */
  remake(key: string): void | Promise<void>;
}

/**
 * Hosts the actors of one kind. Each is made from facts and found by its key. What it asks for goes
 * through the runtime's outbox, its deadline into the runtime's heap, and each of its transitions
 * into the history and the metrics. One that throws is made anew by `Rebuilds`.
 */
export class ActorHost<
  Snapshot extends HostedSnapshot,
  Event extends { readonly type: string },
  Intent,
  Input,
> {
  readonly transitions: TransitionHistory<Cause<Event>>;
  readonly rebuilds: Rebuilds;
  readonly #runtime: ActorRuntime;
  readonly #kind: ActorKind<Snapshot, Event, Intent, Input>;
  readonly #actors = new Map<string, HostedActor<Snapshot, Event, Intent>>();
  readonly #led = new Set<number>();

  constructor(runtime: ActorRuntime, kind: ActorKind<Snapshot, Event, Intent, Input>) {
    const { clock, log, outbox, measures } = runtime;
    this.#runtime = runtime;
    this.#kind = kind;
    this.transitions = new TransitionHistory({
      kind: kind.name,
      clock,
      log,
      causeOf: (event) => kind.causeOf(event),
    });
    this.rebuilds = new Rebuilds({
      entity: kind.entity,
      clock,
      log,
      outbox,
      measures,
      transitions: this.transitions,
    });
    runtime.onDue(kind.prefix, (key, now) => {
      kind.due(key, now);
    });
  }

  get size(): number {
    return this.#actors.size;
  }

  keys(): IterableIterator<string> {
    return this.#actors.keys();
  }

  has(key: string): boolean {
    return this.#actors.has(key);
  }

  snapshot(key: string): Snapshot | undefined {
    return this.#actors.get(key)?.getSnapshot();
  }

  /**
   * Makes and starts the actor; one that is there gives way. The outbox is not drained. Undefined:
   * it threw over its input, and is made anew as any that threw.
   */
  make(key: string, input: Input, cause: 'FOUND' | 'ORDERED' = 'FOUND'): Snapshot | undefined {
    this.#dispose(key);
    const actor = this.#kind.create(input);
    actor.on('*', (intent) => {
      const entry = this.#kind.intent(key, intent);
      if (entry) this.#runtime.outbox.put({ ...entry, of: this.#kind.prefix + key });
    });
    actor.subscribe(UNHEARD);
    this.#actors.set(key, actor);
    actor.start();
    const after = actor.getSnapshot();
    if (after.status === 'error') {
      this.#threw(key, after.error, undefined);
      return undefined;
    }
    this.#changed(key, { before: undefined, after, event: { type: cause } });
    const { leading } = this.#kind;
    if (leading && this.#led.has(leading.shardOf(key)))
      this.send(key, leading.lead(this.#runtime.clock.now()));
    return actor.getSnapshot();
  }

  /**
   * Delivers an event; false where there is no such actor. Its intents are under way when this
   * returns.
   */
  send(key: string, event: Event): boolean {
    const actor = this.#actors.get(key);
    if (!actor) return false;
    const before = actor.getSnapshot();
    actor.send(event);
    const after = actor.getSnapshot();
    if (after.status === 'error') this.#threw(key, after.error, after);
    else this.#changed(key, { before, after, event });
    this.#runtime.outbox.drain();
    return true;
  }

  /** Ends the actor of an entity that is no more, also where that one is broken. */
  end(key: string): void {
    this.#dispose(key);
    this.#remove(key);
    this.rebuilds.forget(key);
  }

  /** Makes the actor anew, also one that is broken. */
  rebuild(key: string): void | Promise<void> {
    this.#dispose(key);
    this.#actors.delete(key);
    this.rebuilds.forget(key);
    const made = this.#kind.remake(key);
    this.#runtime.outbox.drain();
    return made;
  }

  /** This replica decides for the actors of the shard from now on. */
  lead(shard: number): void {
    this.#led.add(shard);
    const { leading } = this.#kind;
    if (leading)
      for (const key of this.#in(shard)) this.send(key, leading.lead(this.#runtime.clock.now()));
  }

  /** It decides for them no more. */
  follow(shard: number): void {
    this.#led.delete(shard);
    const { leading } = this.#kind;
    if (leading) for (const key of this.#in(shard)) this.send(key, leading.follow);
  }

  leads(shard: number): boolean {
    return this.#led.has(shard);
  }

  /** Lists what the actor asked for, and nobody has answered yet. */
  pendingOf(key: string): readonly PendingIntent[] {
    return this.#runtime.outbox.pendingOf(this.#kind.prefix + key);
  }

  stop(): void {
    this.rebuilds.stop();
  }

  #in(shard: number): readonly string[] {
    return [...this.#actors.keys()].filter((key) => this.#kind.leading?.shardOf(key) === shard);
  }

  #changed(key: string, change: Omit<Change<Snapshot, Event>, 'path'>): void {
    const { before, after, event } = change;
    const kind = this.#kind;
    const path = kind.pathOf(after);
    const countedAs = (snapshot: Snapshot): string =>
      kind.countedAs?.(snapshot) ?? (snapshot === after ? path : kind.pathOf(snapshot));
    if (before) this.#runtime.measures.moved(kind.name, countedAs(before), countedAs(after));
    this.transitions.moved(key, path, { event, ...kind.listed(key, after) });
    if (kind.isOver(after)) {
      this.#remove(key);
      this.rebuilds.forget(key);
    } else this.#runtime.arm(kind.prefix, key, kind.deadlineOf(after));
    kind.changed(key, { ...change, path });
  }

  #threw(key: string, error: unknown, last: Snapshot | undefined): void {
    const group = this.transitions.current(key)?.group;
    this.#remove(key);
    this.rebuilds.threw(key, error, { group, make: () => this.#kind.remake(key) });
    this.#kind.threw?.(key, last);
  }

  #remove(key: string): void {
    this.#actors.delete(key);
    this.transitions.ended(key);
    this.#runtime.arm(this.#kind.prefix, key, undefined);
  }

  #dispose(key: string): void {
    const actor = this.#actors.get(key);
    if (!actor) return;
    if (this.#kind.dispose) this.#kind.dispose(actor);
    else actor.stop();
  }
}

/** It is looked at after each event; unobserved, an error would end the process. */
const UNHEARD = { error: (): void => undefined };

/**
 * `stopping.releasing` and the like, in full; of parallel regions each by itself, with spaces
 * between them.
 */
export const pathOf = (value: StateValue): string => {
  if (typeof value === 'string') return value;
  let path = '';
  for (const state in value) {
    const inner = pathOf(value[state] ?? '');
    const below = inner === '' ? state : `${state}.${inner.replaceAll(' ', ` ${state}.`)}`;
    path += path === '' ? below : ` ${below}`;
  }
  return path;
};

interface Waiter {
  readonly look: () => boolean;
  readonly done: () => void;
}

/**
 * Requests that wait for an entity to get somewhere, each with a deadline. Looked at after each
 * change of the entity.
 */
export class Waiters {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Set<Waiter>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Resolves once `look` answers true, or at the moment `until`. `look` is called at once, and
   * after each change.
   */
  async until(key: string, look: () => boolean, until: number): Promise<void> {
    if (look()) return;
    await new Promise<void>((resolve) => {
      const waiting = this.#waiting.get(key) ?? new Set<Waiter>();
      this.#waiting.set(key, waiting);
      const done = (): void => {
        cancel();
        waiting.delete(waiter);
        if (waiting.size === 0) this.#waiting.delete(key);
        resolve();
      };
      const waiter: Waiter = { look, done };
      const cancel = this.#clock.at(until, done);
      waiting.add(waiter);
    });
  }

  changed(key: string): void {
    const waiting = this.#waiting.get(key);
    if (waiting) for (const waiter of [...waiting]) if (waiter.look()) waiter.done();
  }
}
