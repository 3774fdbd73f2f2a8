/** Counts what is under way by key, up to a limit each. */
export class KeyedSemaphore {
  readonly limit: number;
  readonly #taken = new Map<string, number>();

  constructor(limit: number) {
    this.limit = limit;
  }

  /** False where the key has as many as it may. */
  acquire(key: string): boolean {
    const taken = this.#taken.get(key) ?? 0;
    if (taken >= this.limit) return false;
    this.#taken.set(key, taken + 1);
    return true;
  }

  release(key: string): void {
    const left = (this.#taken.get(key) ?? 1) - 1;
    if (left > 0) this.#taken.set(key, left);
    else this.#taken.delete(key);
  }
}
