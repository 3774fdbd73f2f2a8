const MOST_NAMES = 10_000;

export interface Counted {
  readonly within: boolean;
  /** 0 within the limit. */
  readonly retryAfterMs: number;
}

/**
 * Windows begin with the first call. A name's kind is its text before the first slash. Keeps at
 * most 10,000 names per kind, and evicts the window that began first.
 */
export class RateWindows {
  readonly #clock: { now(): number };
  /** In the order of their start. */
  readonly #kinds = new Map<string, Windows>();

  constructor(clock: { now(): number }) {
    this.#clock = clock;
  }

  count(name: string, limit: number, windowMs: number): Counted {
    const now = this.#clock.now();
    const windows = this.#windowsOf(name);
    let window = windows.get(name);
    if (!window || window.endsAt <= now) {
      windows.delete(name);
      makeRoom(windows);
      windows.set(name, (window = { endsAt: now + windowMs, count: 0 }));
    }
    window.count += 1;
    return window.count > limit
      ? { within: false, retryAfterMs: window.endsAt - now }
      : { within: true, retryAfterMs: 0 };
  }

  #windowsOf(name: string): Windows {
    const [kind = ''] = name.split('/', 1);
    const known = this.#kinds.get(kind);
    if (known) return known;
    const windows: Windows = new Map();
    this.#kinds.set(kind, windows);
    return windows;
  }
}

type Windows = Map<string, { readonly endsAt: number; count: number }>;

const makeRoom = (windows: Windows): void => {
  if (windows.size < MOST_NAMES) return;
  for (const first of windows.keys()) return void windows.delete(first);
};
