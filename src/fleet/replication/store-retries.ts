import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../../contracts/clock.ts';

export const AT_ONCE = 16;

export const inParts = async <T>(
  items: readonly T[],
  atOnce: number,
  each: (item: T) => Promise<unknown>,
): Promise<void> => {
  for (let next = 0; next < items.length; next += atOnce)
    await Promise.all(items.slice(next, next + atOnce).map(each));
};

export interface StoreRetriesDeps {
  readonly clock: Clock;
  readonly inTurn: (work: () => Promise<void>) => Promise<void>;
}

/** `moot`: no try is needed any more. */
export type Tried = 'taken' | 'moot' | 'too early';

interface Waiting {
  readonly name: string;
  readonly again: () => Promise<Tried>;
  failures: number;
  dueAt: number;
}

/** Also the wait after the second failure. */
const LOOK_MS = 5_000;
const LONGEST_WAIT_MS = 300_000;

/**
 * Retries failed writes with a wait that doubles up to 5 min. Every 5 s it tries records until 16
 * tries have failed: first the record with the fewest failures, due or not, then those that are due
 * longest. After a success, it retries all records with no more failures at once, then the others
 * 16 at a time, until none of 16 succeeds. So a recovered store has everything within seconds, and
 * a failing store gets few requests.
 */
export class StoreRetries {
  readonly #deps: StoreRetriesDeps;
  /** Oldest last try first. */
  readonly #waiting = new Map<string, Waiting>();
  #callOff: (() => void) | undefined;
  #stopped = false;

  constructor(deps: StoreRetriesDeps) {
    this.#deps = deps;
  }

  has(name: string): boolean {
    return this.#waiting.has(name);
  }

  /** Schedules `again` until it resolves to `taken` or `moot`. */
  put(name: string, again: () => Promise<Tried>): void {
    const { failures = 0, dueAt = this.#deps.clock.now() } = this.#waiting.get(name) ?? {};
    this.#noteFailure({ name, again, failures, dueAt });
    this.#arm();
  }

  forget(name: string): void {
    this.#waiting.delete(name);
  }

  stop(): void {
    this.#stopped = true;
    this.#callOff?.();
    this.#waiting.clear();
  }

  #noteFailure(one: Waiting): void {
    const now = this.#deps.clock.now();
    if (one.dueAt <= now) {
      one.failures += 1;
      const waitMs = one.failures === 1 ? 0 : LOOK_MS * 2 ** (one.failures - 2);
      one.dueAt = now + Math.min(waitMs, LONGEST_WAIT_MS);
    }
    this.#waiting.delete(one.name);
    this.#waiting.set(one.name, one);
  }

  #arm(): void {
    const { clock } = this.#deps;
    if (this.#callOff || this.#stopped || this.#waiting.size === 0) return;
    this.#callOff = clock.at(clock.now() + LOOK_MS, () => {
      void this.#look().finally(() => {
        this.#callOff = undefined;
        this.#arm();
      });
    });
  }

  async #look(): Promise<void> {
    const line = [...this.#waiting.values()].sort((a, b) => a.failures - b.failures);
    const now = this.#deps.clock.now();
    const due = line.filter(({ dueAt }) => dueAt <= now).sort((a, b) => a.dueAt - b.dueAt);
    const first = [...new Set([...line.slice(0, 1), ...due])];
    let [most, tried] = [0, 0];
    for (let asks = AT_ONCE; most === 0 && asks > 0 && tried < first.length;) {
      const { taken, failed } = await this.#tryAll(first.slice(tried, tried + asks));
      most = taken;
      tried += asks;
      asks -= failed;
    }
    if (most === 0) return;
    const asked = new Set(first.slice(0, tried));
    for (let left = line.filter((one) => !asked.has(one)); left.length > 0;) {
      const { taken, failed } = await this.#tryAll(left.slice(0, AT_ONCE));
      left = left.slice(AT_ONCE);
      most = Math.max(most, taken);
      if (taken === 0 && failed > 0 && (left[0]?.failures ?? 0) > most) return;
    }
  }

  /** `taken`: highest previous failures of a record that was taken, or 0. */
  async #tryAll(some: readonly Waiting[]): Promise<{ taken: number; failed: number }> {
    let [taken, failed] = [0, 0];
    await this.#deps.inTurn(async () => {
      const all = some.map(async (one) => {
        const { failures } = one;
        const tried = await this.#try(one);
        if (tried === 'taken') taken = Math.max(taken, failures);
        if (tried === 'failed') failed += 1;
      });
      await Promise.all(all);
    });
    await nextTurn();
    return { taken, failed };
  }

  async #try(one: Waiting): Promise<Tried | 'failed'> {
    const isMeant = (): boolean => this.#waiting.get(one.name) === one;
    if (!isMeant()) return 'moot';
    const tried = await one.again().catch(() => 'failed' as const);
    if (!isMeant()) return tried;
    if (tried === 'failed') this.#noteFailure(one);
    else if (tried !== 'too early') this.#waiting.delete(one.name);
    return tried;
  }
}
