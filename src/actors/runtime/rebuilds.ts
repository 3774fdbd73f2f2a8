import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import { BROKEN } from '../../model/inspection.ts';
import type { ActorMeasures, Outbox } from './actor-runtime.ts';
import type { TransitionHistory } from './transition-history.ts';

export const MOST_THROWS = 5;
const FIRST_PAUSE_MS = 100;
const LAST_PAUSE_MS = 30_000;
/** Earlier throws don't count after this time without one. */
const FORGOTTEN_MS = 300_000;

export interface RebuildsDeps {
  readonly entity: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly outbox: Outbox;
  readonly measures: ActorMeasures | undefined;
  readonly transitions: Pick<TransitionHistory<{ readonly type: 'THREW' }>, 'moved' | 'ended'>;
}

export interface Remaking {
  /** For a sandbox, its pool's uid. The earlier group if undefined. */
  readonly group: string | undefined;
  readonly make: () => void | Promise<void>;
}

/** `broken`: is not rebuilt unless somebody requests it. */
interface Dead {
  readonly group: string;
  throws: number;
  tries: number;
  at: number;
  state: 'waits' | 'broken' | 'made';
  cancel: () => void;
}

/**
 * An actor that threw is never used again: its successor comes after a doubling pause. After five
 * throws in a row the entity stays broken, so that one bad record does not harm others.
 */
export class Rebuilds {
  readonly #deps: RebuildsDeps;
  readonly #dead = new Map<string, Dead>();
  #count = 0;

  constructor(deps: RebuildsDeps) {
    this.#deps = deps;
  }

  get count(): number {
    return this.#count;
  }

  get broken(): readonly string[] {
    return [...this.#dead].flatMap(([key, { state }]) => (state === 'broken' ? [key] : []));
  }

  isBroken(key: string): boolean {
    return this.#dead.get(key)?.state === 'broken';
  }

  /** Nobody else may create an actor then. */
  has(key: string): boolean {
    const dead = this.#dead.get(key);
    return dead !== undefined && dead.state !== 'made';
  }

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
      isBroken ? 'actor-broken' : 'actor-threw',
    );
    if (isBroken) transitions.moved(key, BROKEN, { event: { type: 'THREW' }, group: of, born: 0 });
    else this.#makeLater(key, dead, make);
  }

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
        dead.state = 'made'; // permits `make` to create it
        await make();
      } catch (error) {
        if (this.#dead.get(key) !== dead) return;
        log.warn({ entity, key, error }, 'actor-not-rebuilt');
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
