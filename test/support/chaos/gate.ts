/** Holds up those who work, so that a moment comes in which none of them does. */
export class Gate {
  #opened: Promise<void> | undefined;
  #open: () => void = () => undefined;
  #inside = 0;
  #empty: () => void = () => undefined;

  get isClosed(): boolean {
    return this.#opened !== undefined;
  }

  /** Does the work once the gate is open; it counts as inside until that is done. */
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

  /**
   * Resolves once nobody is inside, with true, or after so many ms with false; nobody comes in
   * until `open`.
   */
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
