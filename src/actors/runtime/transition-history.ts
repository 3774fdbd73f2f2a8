import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { Transition } from '../../model/inspection.ts';
import { requestNow } from '../../model/request-scope.ts';
import { OrderedIndex, type OrderedEntry } from '../../lib/ordered-index.ts';

export const MOST_TRANSITIONS = 50;
const MOST_KEPT = 500_000;
/** Above it, new ones omit the cause. */
const MOST_WORDINGS = 10_000;
const MOST_PASSED_OVER = 100;
const MOST_MADE_MEANWHILE = 1_000;
const MOST_GROUPS_LOOKED_AT = 2_000;

export interface Moved<E> {
  readonly event: E;
  /** For a sandbox, its pool's uid. Constant. */
  readonly group: string;
  /** Constant. */
  readonly born: number;
}

export interface TransitionHistoryDeps<E> {
  readonly kind: string;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Log;
  readonly causeOf: (event: E) => string;
  readonly mostKept?: number;
}

interface CurrentState {
  readonly state: string;
  readonly since: number;
  readonly moves: number;
  readonly group: string;
}

export interface HistoryCursor {
  readonly group: string;
  readonly state: string;
  readonly entry: OrderedEntry | undefined;
}

export interface HistoryQuery {
  readonly group?: string;
  readonly state?: string;
  readonly after?: HistoryCursor;
  readonly limit: number;
}

export interface HistoryPage {
  readonly keys: readonly string[];
  readonly next: HistoryCursor | undefined;
}

/**
 * `times` alternates time and wording. Each transition replaces the array, without spare capacity.
 */
interface ActorHistory extends OrderedEntry {
  readonly group: string;
  state: string;
  times: readonly number[];
  made: number;
}

interface Wording {
  readonly event: string;
  readonly cause: string;
  readonly from: string;
  readonly to: string;
}

/**
 * Keeps the last 50 transitions of each actor, at most half a million in all. An actor with three
 * transitions costs about 280 bytes, a transition two microseconds.
 */
export class TransitionHistory<E extends { readonly type: string }> {
  readonly #deps: TransitionHistoryDeps<E>;
  readonly #mostKept: number;
  readonly #histories = new Map<string, ActorHistory>();
  readonly #groups = new OrderedIndex();
  readonly #byState = new Map<string, Map<string, OrderedIndex>>();
  readonly #counts = new Map<string, number>();
  readonly #wordings: Wording[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #followers = new Map<string, Set<(transition: Transition | undefined) => void>>();
  #kept = 0;
  /**
   * Discarded after many new actors, because it retains all actors that have ended since its last
   * step.
   */
  #turn: MapIterator<ActorHistory> | undefined;
  #madeSinceTurn = 0;

  constructor(deps: TransitionHistoryDeps<E>) {
    this.#deps = deps;
    this.#mostKept = deps.mostKept ?? MOST_KEPT;
  }

  get size(): number {
    return this.#histories.size;
  }

  moved(key: string, to: string, { event, group, born }: Moved<E>): void {
    const known = this.#histories.get(key);
    if (this.#deps.log.detailed) this.#write(key, known?.state, { to, event });
    if (known?.state === to) return;
    const history = known ?? { at: born, id: key, group, state: '', times: [], made: 0 };
    const wording = this.#numberOf({
      event: event.type,
      cause: this.#deps.causeOf(event),
      from: history.state,
      to,
    });
    if (known) this.#removeFromState(known);
    else this.#add(history);
    const { times } = history;
    const full = times.length === 2 * MOST_TRANSITIONS;
    history.times = (full ? times.slice(2) : times).concat([this.#deps.clock.now(), wording]);
    history.made += 1;
    history.state = to;
    if (!full) this.#kept += 1;
    this.#addToState(history);
    if (this.#kept > this.#mostKept) this.#forgetSome(history);
    if (this.#followers.size > 0) this.#tell(key, history);
  }

  #write(
    id: string,
    from: string | undefined,
    { to, event }: { readonly to: string; readonly event: E },
  ): void {
    const { kind, log, causeOf } = this.#deps;
    const cause = causeOf(event);
    const fields = {
      entity: kind,
      id,
      ...requestNow(),
      event: event.type,
      cause: cause || undefined,
    };
    if (from === to) log.trace({ ...fields, state: to }, 'actor-event');
    else log.debug({ ...fields, from, to }, 'actor-moved');
  }

  ended(key: string): void {
    const history = this.#histories.get(key);
    if (!history) return;
    this.#histories.delete(key);
    this.#kept -= history.times.length / 2;
    this.#removeFromState(history);
    for (const report of this.#followers.get(key) ?? []) report(undefined);
  }

  current(key: string): CurrentState | undefined {
    const history = this.#histories.get(key);
    return (
      history && {
        state: history.state,
        since: history.times.at(-2) ?? 0,
        moves: history.made,
        group: history.group,
      }
    );
  }

  /** Oldest first. */
  of(key: string): readonly Transition[] {
    const history = this.#histories.get(key);
    return history
      ? Array.from({ length: history.times.length / 2 }, (_, index) =>
          this.#transition(history, index),
        )
      : [];
  }

  counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  /** May return fewer than `limit` keys; continue while there is a `next`. */
  page({ group, state, after, limit }: HistoryQuery): HistoryPage {
    const keys: string[] = [];
    const groups = this.#groupsFrom(group, after);
    for (const [index, name] of groups.entries()) {
      const states = [...(this.#byState.get(name)?.keys() ?? [])]
        .filter((each) => state === undefined || isWithin(each, state))
        .sort();
      for (const each of states) {
        const same = after?.group === name;
        if (same && each < after.state) continue;
        const found =
          this.#byState
            .get(name)
            ?.get(each)
            ?.after(same && each === after.state ? after.entry : undefined, limit - keys.length) ??
          [];
        keys.push(...found.map(({ id }) => id));
        const last = found.at(-1);
        if (keys.length === limit && last)
          return { keys, next: { group: name, state: each, entry: { at: last.at, id: last.id } } };
      }
      if (index === MOST_GROUPS_LOOKED_AT)
        return { keys, next: { group: name, state: '\uffff', entry: undefined } };
    }
    return { keys, next: undefined };
  }

  /** Reports undefined at the actor's end. `report` must not throw. */
  follow(key: string, report: (transition: Transition | undefined) => void): () => void {
    const followers = this.#followers.get(key) ?? new Set();
    this.#followers.set(key, followers);
    followers.add(report);
    return () => {
      followers.delete(report);
      if (followers.size === 0 && this.#followers.get(key) === followers)
        this.#followers.delete(key);
    };
  }

  #add(history: ActorHistory): void {
    this.#histories.set(history.id, history);
    this.#madeSinceTurn += 1;
    if (this.#madeSinceTurn > MOST_MADE_MEANWHILE) this.#turn = undefined;
  }

  #groupsFrom(group: string | undefined, after: HistoryCursor | undefined): readonly string[] {
    if (group !== undefined) return [group];
    const from = after && { at: 0, id: after.group };
    const first = after && this.#byState.has(after.group) ? [after.group] : [];
    return [...first, ...this.#groups.after(from, MOST_GROUPS_LOOKED_AT + 1).map(({ id }) => id)];
  }

  #tell(key: string, history: ActorHistory): void {
    const followers = this.#followers.get(key);
    if (!followers) return;
    const transition = this.#transition(history, history.times.length / 2 - 1);
    for (const report of followers) report(transition);
  }

  #transition({ times, made }: ActorHistory, index: number): Transition {
    const at = times[2 * index] ?? 0;
    const wording = this.#wordings[times[2 * index + 1] ?? 0] ?? UNWORDED;
    return {
      number: made - times.length / 2 + index + 1,
      at,
      ...wording,
      stoodMs: at - (times[2 * index - 2] ?? at),
    };
  }

  #numberOf(wording: Wording): number {
    const spelt = `${wording.event} ${wording.cause} ${wording.from}>${wording.to}`;
    const known = this.#numbers.get(spelt);
    if (known !== undefined) return known;
    if (this.#wordings.length >= MOST_WORDINGS)
      return wording.cause === '' ? MOST_WORDINGS : this.#numberOf({ ...wording, cause: '' });
    this.#numbers.set(spelt, this.#wordings.length);
    return this.#wordings.push(wording) - 1;
  }

  #forgetSome(but: ActorHistory): void {
    this.#madeSinceTurn = 0;
    for (let tries = 0; tries < MOST_PASSED_OVER; tries++) {
      this.#turn ??= this.#histories.values();
      const next = this.#turn.next();
      if (next.done === true) this.#turn = undefined;
      else if (next.value !== but && next.value.times.length > 0) {
        this.#kept -= next.value.times.length / 2;
        next.value.times = [];
        return;
      }
    }
  }

  #addToState(history: ActorHistory): void {
    let states = this.#byState.get(history.group);
    if (!states) {
      this.#byState.set(history.group, (states = new Map()));
      this.#groups.add({ at: 0, id: history.group });
    }
    let actors = states.get(history.state);
    if (!actors) states.set(history.state, (actors = new OrderedIndex()));
    actors.add(history);
    for (const part of history.state.split(' '))
      this.#counts.set(part, (this.#counts.get(part) ?? 0) + 1);
  }

  #removeFromState(history: ActorHistory): void {
    const states = this.#byState.get(history.group);
    const actors = states?.get(history.state);
    if (!states || !actors?.remove(history)) return;
    if (actors.size === 0) states.delete(history.state);
    if (states.size === 0) {
      this.#byState.delete(history.group);
      this.#groups.remove({ at: 0, id: history.group });
    }
    for (const part of history.state.split(' ')) {
      const left = (this.#counts.get(part) ?? 1) - 1;
      if (left > 0) this.#counts.set(part, left);
      else this.#counts.delete(part);
    }
  }
}

const UNWORDED: Wording = { event: '', cause: '', from: '', to: '' };

export const isWithin = (state: string, asked: string): boolean =>
  state === asked ||
  state.split(' ').some((part) => part === asked || part.startsWith(`${asked}.`));
