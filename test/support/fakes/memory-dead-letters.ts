import {
  DEAD_LETTER_MS,
  MAX_DEAD_LETTERS,
  type DeadLetters,
  type KeptDeadLetter,
} from '../../../src/contracts/coordination/dead-letters.ts';
import { unavailable } from '../../../src/model/refusals.ts';
import type { TestClock } from './test-clock.ts';

/** May be shared, and may be unavailable. */
export class MemoryDeadLetters implements DeadLetters {
  readonly #clock: TestClock;
  readonly #kept = new Map<string, { readonly at: number; readonly letter: KeptDeadLetter }[]>();
  away = false;

  constructor(clock: TestClock) {
    this.#clock = clock;
  }

  async keep(receiver: string, letter: KeptDeadLetter): Promise<void> {
    const others = this.#of(receiver).filter((each) => each.letter.id !== letter.id);
    const all = [{ at: this.#clock.now(), letter }, ...others];
    this.#kept.set(receiver, all.slice(0, MAX_DEAD_LETTERS));
  }

  async of(receiver: string): Promise<readonly KeptDeadLetter[]> {
    return this.#of(receiver).map(({ letter }) => letter);
  }

  async forget(receiver: string, id: string): Promise<void> {
    const left = this.#of(receiver).filter(({ letter }) => letter.id !== id);
    this.#kept.set(receiver, left);
  }

  #of(receiver: string) {
    if (this.away) throw unavailable('the place of dead letters is away');
    const since = this.#clock.now() - DEAD_LETTER_MS;
    return (this.#kept.get(receiver) ?? []).filter(({ at }) => at > since);
  }
}
