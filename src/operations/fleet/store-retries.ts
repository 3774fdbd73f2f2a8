import type { Clock } from '../../contracts/clock.ts';
import { AT_ONCE, inParts } from './in-parts.ts';

export interface StoreRetriesDeps {
  readonly clock: Clock;
  /** Runs work once what came before it is done. */
  readonly inTurn: (work: () => Promise<void>) => Promise<void>;
}

/** Between one try and the next. */
const AGAIN_MS = 5_000;

/**
 * Tries again what a store did not take: every 5 s those 16 that waited longest, and all others as
 * soon as it takes one of them. So a store that is back has all of it within seconds, and one that
 * takes nothing is asked little.
 */
export class StoreRetries {
  readonly #deps: StoreRetriesDeps;
  readonly #waiting = new Map<string, () => Promise<void>>();
  #callOff: (() => void) | undefined;
  #stopped = false;

  constructor(deps: StoreRetriesDeps) {
    this.#deps = deps;
  }

  has(name: string): boolean {
    return this.#waiting.has(name);
  }

  get names(): readonly string[] {
    return [...this.#waiting.keys()];
  }

  /** Tries later, until it does not reject, in place of what was tried under the name. */
  put(name: string, again: () => Promise<void>): void {
    this.#waiting.set(name, again);
    this.#arm();
  }

  /** Tries it no more. */
  forget(name: string): void {
    this.#waiting.delete(name);
  }

  /** Tries nothing more. */
  stop(): void {
    this.#stopped = true;
    this.#callOff?.();
    this.#waiting.clear();
  }

  #arm(): void {
    if (this.#callOff || this.#stopped || this.#waiting.size === 0) return;
    const { clock, inTurn } = this.#deps;
    this.#callOff = clock.at(clock.now() + AGAIN_MS, () => {
      void inTurn(() => this.#tryAll()).finally(() => {
        this.#callOff = undefined;
        this.#arm();
      });
    });
  }

  async #tryAll(): Promise<void> {
    const names = [...this.#waiting.keys()];
    let takesAny = false;
    const tryOne = async (name: string): Promise<void> => {
      if (await this.#isDone(name)) takesAny = true;
    };
    await inParts(names.slice(0, AT_ONCE), tryOne);
    if (takesAny) await inParts(names.slice(AT_ONCE), tryOne);
  }

  async #isDone(name: string): Promise<boolean> {
    const again = this.#waiting.get(name);
    if (!again || this.#stopped) return false;
    const done = await again().then(
      () => true,
      () => false,
    );
    if (this.#waiting.get(name) !== again) return done;
    this.#waiting.delete(name);
    if (!done) this.#waiting.set(name, again); // to the end
    return done;
  }
}
