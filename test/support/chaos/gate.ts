export class Gate {
  #opened: Promise<void> | undefined;
  #open: () => void = () => undefined;
  #inside = 0;
  #empty: () => void = () => undefined;

  get isClosed(): boolean {
    return this.#opened !== undefined;
  }

  /** Counts as inside until the work is done. */
  async through<T>(work: () => Promise<T>): Promise<T> {
    while (this.#opened) await this.#opened;
    this.#inside += 1;
    try {
      return await work();
    } finally {
      this.#inside -= 1;
      if (this.#inside === 0) this.#empty();
    }
  }

  /** False after `withinMs`. Nobody enters until `open`. */
  async close(withinMs: number): Promise<boolean> {
    this.#opened ??= new Promise((resolve) => {
      this.#open = resolve;
    });
    if (this.#inside === 0) return true;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(resolve, withinMs, false);
    });
    const empty = new Promise<true>((resolve) => {
      this.#empty = () => {
        resolve(true);
      };
    });
    return await Promise.race([empty, late]).finally(() => {
      clearTimeout(timer);
    });
  }

  open(): void {
    this.#opened = undefined;
    this.#open();
  }
}
