import type { InspectedKinds } from '../../actors/inspection/inspected-actors.ts';
import type { Clock } from '../../contracts/clock.ts';
import { type ActorKind, actorNotFound } from '../../model/inspection.ts';
import { tooManyStreams } from '../../model/limit-refusals.ts';
import {
  TransitionCursor,
  type TransitionPosition,
  type TransitionPage,
} from './transition-cursor.ts';

/** Repeated while it has a reader. */
export interface TransitionQuestion {
  readonly about: 'transitions';
  readonly kind: ActorKind;
  readonly key: string;
  readonly follower: string;
  readonly mark?: TransitionPosition;
}

/** In ms, after which an unused session ends. */
export const SESSION_MS = 5_000;
const MOST_SESSIONS = 256;

interface Session {
  readonly reading: TransitionCursor;
  askedAt: number;
}

export interface TransitionSubscriptionsDeps {
  readonly kinds: InspectedKinds;
  readonly clock: Clock;
  readonly replica: string;
}

/**
 * For readers on other replicas. Transitions between two questions are buffered, also an actor's
 * last moves.
 */
export class TransitionSubscriptions {
  readonly #deps: TransitionSubscriptionsDeps;
  readonly #open = new Map<string, Session>();
  #armed = false;

  constructor(deps: TransitionSubscriptionsDeps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Refuses with NOT_FOUND, or with TOO_MANY_STREAMS. */
  page({ kind, key, follower, mark }: TransitionQuestion): TransitionPage {
    const name = `${follower} ${kind} ${key}`;
    const now = this.#deps.clock.now();
    const session = this.#open.get(name) ?? this.#opened(name, { kind, key });
    session.askedAt = now;
    return session.reading.page(mark);
  }

  #opened(name: string, { kind, key }: Pick<TransitionQuestion, 'kind' | 'key'>): Session {
    const { kinds, clock, replica } = this.#deps;
    const { transitions } = kinds[kind];
    if (!transitions.current(key)) throw actorNotFound();
    if (this.#open.size >= MOST_SESSIONS) throw tooManyStreams('the replica has', MOST_SESSIONS);
    const session = {
      reading: new TransitionCursor({ transitions, key, by: replica, now: clock.now() }),
      askedAt: clock.now(),
    };
    this.#open.set(name, session);
    this.#forgetLater();
    return session;
  }

  #forgetLater(): void {
    if (this.#armed || this.#open.size === 0) return;
    this.#armed = true;
    const { clock } = this.#deps;
    clock.at(clock.now() + SESSION_MS, () => {
      this.#armed = false;
      for (const [name, { reading, askedAt }] of this.#open) {
        if (clock.now() - askedAt < SESSION_MS) continue;
        reading.close();
        this.#open.delete(name);
      }
      this.#forgetLater();
    });
  }
}
