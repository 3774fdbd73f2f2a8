/** Evicts the least recently added. */
export class RecentSet {
  readonly #most: number;
  readonly #items = new Set<string>();

  constructor(most: number) {
    this.#most = most;
  }

  has(item: string): boolean {
    return this.#items.has(item);
  }

  delete(item: string): void {
    this.#items.delete(item);
  }

  add(item: string): void {
    this.#items.delete(item);
    this.#items.add(item);
    if (this.#items.size <= this.#most) return;
    for (const oldest of this.#items) {
      this.#items.delete(oldest);
      return;
    }
  }
}
