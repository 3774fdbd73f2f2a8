const MOST_NAMES = 10_000;

export interface Counted {
  readonly within: boolean;
  /** Until the window ends; 0 where it is within. */
  readonly retryAfterMs: number;
}

/**
 * Counts by name in windows that begin with the first of them. At most 10,000 names; the one that
 * began longest ago goes first.
 */
export class RateWindows {
  readonly #clock: { now(): number };
  /** The windows; those that began first stand first. */
  readonly #windows = new Map<string, { readonly endsAt: number; count: number }>();

  constructor(clock: { now(): number }) {
    this.#clock = clock;
  }

  /** Counts one. */
  count(name: string, limit: number, windowMs: number): Counted {
    const now = this.#clock.now();
    let window = this.#windows.get(name);
    if (!window || window.endsAt <= now) {
      this.#windows.delete(name);
      this.#makeRoom();
      this.#windows.set(name, (window = { endsAt: now + windowMs, count: 0 }));
    }
    window.count += 1;
    return window.count > limit
      ? { within: false, retryAfterMs: window.endsAt - now }
      : { within: true, retryAfterMs: 0 };
  }

  #makeRoom(): void {
    if (this.#windows.size < MOST_NAMES) return;
    for (const first of this.#windows.keys()) return void this.#windows.delete(first);
  }
}
