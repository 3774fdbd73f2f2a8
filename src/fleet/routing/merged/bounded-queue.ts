/**
 * Takes what several produce for one who takes it, in the order in which it came. Whoever would put
 * more into it than fits waits, each in its turn.
 */
export class BoundedQueue<T> {
  readonly #most: number;
  readonly #items: T[] = [];
  readonly #full: (() => void)[] = [];
  #empty: (() => void) | undefined;
  #closed = false;

  constructor(most: number) {
    this.#most = most;
  }

  /** Resolves once the item is in it; at once, and without it, where it is closed. */
  async put(item: T): Promise<void> {
    if (!this.#closed && (this.#items.length >= this.#most || this.#full.length > 0))
      await new Promise<void>((resolve) => void this.#full.push(resolve));
    if (this.#closed) return;
    this.#items.push(item);
    this.#empty?.();
    this.#empty = undefined;
  }

  /** Resolves with undefined once it is closed. One at a time may wait. */
  async take(): Promise<T | undefined> {
    if (this.#items.length === 0 && !this.#closed)
      await new Promise<void>((resolve) => {
        this.#empty = resolve;
      });
    const item = this.#closed ? undefined : this.#items.shift();
    this.#full.shift()?.();
    return item;
  }

  /** Drops what is in it. May be repeated. */
  close(): void {
    this.#closed = true;
    this.#items.length = 0;
    this.#empty?.();
    for (const resolve of this.#full.splice(0)) resolve();
  }
}
