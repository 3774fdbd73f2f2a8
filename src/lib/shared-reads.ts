export interface SharedReadsDeps<T> {
  readonly clock: { now(): number; at(moment: number, due: () => void): unknown };
  readonly read: (key: string) => Promise<T | undefined>;
}

const EVERY_MS = 250;
const MOST_KEYS = 10_000;

/** At most one read per key in 250 ms; callers share the next. */
export class SharedReads<T> {
  readonly #deps: SharedReadsDeps<T>;
  readonly #next = new Map<string, Promise<T | undefined>>();
  readonly #lastAt = new Map<string, number>();

  constructor(deps: SharedReadsDeps<T>) {
    this.#deps = deps;
  }

  /** Never from before this call. Rejects like the read. */
  read(key: string): Promise<T | undefined> {
    const waiting = this.#next.get(key);
    if (waiting) return waiting;
    const { clock, read } = this.#deps;
    const at = (this.#lastAt.get(key) ?? Number.NEGATIVE_INFINITY) + EVERY_MS;
    const turn =
      at <= clock.now()
        ? Promise.resolve()
        : new Promise<void>((resolve) => {
            clock.at(at, resolve);
          });
    const result = turn.then(() => {
      this.#next.delete(key);
      if (this.#lastAt.size >= MOST_KEYS) this.#lastAt.clear();
      this.#lastAt.set(key, clock.now());
      return read(key);
    });
    this.#next.set(key, result);
    return result;
  }
}
