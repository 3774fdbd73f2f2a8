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

export interface HostedActor<Snapshot, Event, Intent> {
  getSnapshot(): Snapshot;
  send(event: Event): void;
  start(): unknown;
  stop(): unknown;
  on(type: '*', put: (intent: Intent) => void): unknown;
  subscribe(observer: { readonly error: () => void }): unknown;
}

export type Cause<Event> = Event | { readonly type: 'FOUND' | 'ORDERED' | 'THREW' };

export interface Change<Snapshot, Event> {
  readonly before: Snapshot | undefined;
  readonly after: Snapshot;
  readonly event: Cause<Event>;
  readonly path: string;
}

export interface ActorKind<Snapshot extends HostedSnapshot, Event, Intent, Input> {
  readonly name: KindName;
  readonly entity: string;
  /** One character that prefixes the keys of its deadlines and intents. */
  readonly prefix: string;

  create(input: Input): HostedActor<Snapshot, Event, Intent>;
  dispose?(actor: HostedActor<Snapshot, Event, Intent>): void;

  /** Such as `stopping.releasing`. */
  pathOf(snapshot: Snapshot): string;
  countedAs?(snapshot: Snapshot): string;
  /** A group, and an age within it. Both must be constant. */
  listed(key: string, snapshot: Snapshot): { readonly group: string; readonly born: number };
  causeOf(event: Cause<Event>): string;

  isOver(snapshot: Snapshot): boolean;
  /** Ms since the epoch. */
  deadlineOf(snapshot: Snapshot): number | undefined;
  due(key: string, now: number): void;

  /** Absent if the kind does not need leadership. */
  readonly leading?: {
    shardOf(key: string): number;
    lead(now: number): Event;
    readonly follow: Event;
  };

  intent(key: string, intent: Intent): Omit<OutboxEntry, 'of'> | undefined;
  /** Called after each event, and after creation. An ended actor is already removed. */
  changed(key: string, change: Change<Snapshot, Event>): void;
  /** Called after the actor was removed. Without a snapshot if it threw on its input. */
  threw?(key: string, last: Snapshot | undefined): void;
  remake(key: string): void | Promise<void>;
}

/**
 * Intents go through the runtime's outbox, deadlines to its heap, transitions to history and
 * metrics. `Rebuilds` replaces an actor that throws.
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
   * Replaces an existing actor. Does not drain the outbox. Undefined if the actor threw on its
   * input; then it is rebuilt as usual.
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

  /** False if there is no such actor. Starts its intents before it returns. */
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

  end(key: string): void {
    this.#dispose(key);
    this.#remove(key);
    this.rebuilds.forget(key);
  }

  rebuild(key: string): void | Promise<void> {
    this.#dispose(key);
    this.#actors.delete(key);
    this.rebuilds.forget(key);
    const made = this.#kind.remake(key);
    this.#runtime.outbox.drain();
    return made;
  }

  lead(shard: number): void {
    this.#led.add(shard);
    const { leading } = this.#kind;
    if (leading)
      for (const key of this.#in(shard)) this.send(key, leading.lead(this.#runtime.clock.now()));
  }

  follow(shard: number): void {
    this.#led.delete(shard);
    const { leading } = this.#kind;
    if (leading) for (const key of this.#in(shard)) this.send(key, leading.follow);
  }

  leads(shard: number): boolean {
    return this.#led.has(shard);
  }

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

/** The host checks errors after each event. Without an observer, an error would end the process. */
const UNHEARD = { error: (): void => undefined };

/** Such as `stopping.releasing`; joins parallel regions with spaces. */
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

export class Waiters {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Set<Waiter>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when `look` returns true, or at `until`. */
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
