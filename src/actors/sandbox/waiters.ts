import type { Clock } from '../../contracts/clock.ts';

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
