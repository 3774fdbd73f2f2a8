import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import { BROKEN } from '../../model/inspection.ts';
import type { ActorMeasures, Outbox } from './actor-runtime.ts';
import type { TransitionHistory } from './transition-history.ts';

/** Throws in a row after which an entity is broken. */
export const MOST_THROWS = 5;
const FIRST_PAUSE_MS = 100;
const LAST_PAUSE_MS = 30_000;
/** One that has got on for so long has its throws forgotten. */
const FORGOTTEN_MS = 300_000;

export interface RebuildsDeps {
  /** The word for it in the log. */
  readonly entity: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly outbox: Outbox;
  readonly measures: ActorMeasures | undefined;
  /** Shows the broken ones among the others. */
  readonly transitions: Pick<TransitionHistory<{ readonly type: 'THREW' }>, 'moved' | 'ended'>;
}

/** How an actor is made anew. */
export interface Remaking {
  /** It is listed by it: a sandbox's is its pool's uid. Undefined: as when it threw before. */
  readonly group: string | undefined;
  /** Called when it is time; where that rejects, again after a longer pause. */
  readonly make: () => void | Promise<void>;
}

/** `waits`: there is no actor. `broken`: nor will there be one, unless somebody asks for it. */
interface Dead {
  readonly group: string;
  throws: number;
  tries: number;
  at: number;
  state: 'waits' | 'broken' | 'made';
  cancel: () => void;
}

/**
 * Has actors that threw made anew, for all hosts alike. An actor that threw is dead for good. Its
 * successor is made through the outbox after a pause, which doubles. After five throws in a row the
 * entity is broken: it is left alone, and shown so, that one poisoned record takes down nobody.
 */
export class Rebuilds {
  readonly #deps: RebuildsDeps;
  readonly #dead = new Map<string, Dead>();
  #count = 0;

  constructor(deps: RebuildsDeps) {
    this.#deps = deps;
  }

  /** How many actors threw, ever. */
  get count(): number {
    return this.#count;
  }

  /** The keys of entities that are broken. */
  get broken(): readonly string[] {
    return [...this.#dead].flatMap(([key, { state }]) => (state === 'broken' ? [key] : []));
  }

  isBroken(key: string): boolean {
    return this.#dead.get(key)?.state === 'broken';
  }

  /**
   * Whether the entity's actor threw, and no other has been made yet. Nobody else is to make one.
   */
  has(key: string): boolean {
    const dead = this.#dead.get(key);
    return dead !== undefined && dead.state !== 'made';
  }

  /** An actor threw, and its host has dropped it. */
  threw(key: string, error: unknown, { group, make }: Remaking): void {
    const { clock, log, measures, entity, transitions } = this.#deps;
    const now = clock.now();
    this.#prune(now);
    this.#count += 1;
    measures?.threw();
    const earlier = this.#dead.get(key);
    earlier?.cancel();
    const throws = (earlier?.throws ?? 0) + 1;
    const isBroken = throws >= MOST_THROWS;
    const state = isBroken ? 'broken' : 'waits';
    const of = group ?? earlier?.group ?? '';
    const dead: Dead = {
      group: of,
      throws,
      tries: throws,
      at: now,
      state,
      cancel: () => undefined,
    };
    this.#dead.set(key, dead);
    log.error(
      { entity, key, throws, error: String(error) },
      isBroken ? 'actor threw repeatedly and was stopped' : 'actor threw; it will be rebuilt soon',
    );
    if (isBroken) transitions.moved(key, BROKEN, { event: { type: 'THREW' }, group: of, born: 0 });
    else this.#makeLater(key, dead, make);
  }

  /** It is no more, or was made by somebody who asked for it: its throws do not count. */
  forget(key: string): void {
    const dead = this.#dead.get(key);
    dead?.cancel();
    if (dead?.state === 'broken') this.#deps.transitions.ended(key);
    this.#dead.delete(key);
  }

  stop(): void {
    for (const key of [...this.#dead.keys()]) this.forget(key);
  }

  #makeLater(key: string, dead: Dead, make: () => void | Promise<void>): void {
    const { clock, outbox, log, entity } = this.#deps;
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (dead.tries - 1), LAST_PAUSE_MS);
    const act = async (): Promise<void> => {
      if (this.#dead.get(key) !== dead) return;
      try {
        dead.state = 'made'; // now `make` may
        await make();
      } catch (error) {
        if (this.#dead.get(key) !== dead) return;
        log.warn({ entity, key, error }, 'an actor could not be rebuilt; trying again');
        dead.state = 'waits';
        dead.tries += 1;
        this.#makeLater(key, dead, make);
      }
    };
    dead.cancel = clock.at(clock.now() + pauseMs, () => {
      outbox.put({ name: 'rebuild', lease: undefined, act });
      outbox.drain();
    });
  }

  #prune(now: number): void {
    for (const [key, { state, at }] of this.#dead) {
      if (state === 'made' && now - at > FORGOTTEN_MS) this.#dead.delete(key);
    }
  }
}
