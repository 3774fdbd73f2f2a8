import type { Clock } from '../contracts/clock.ts';
import { addressGroup } from './address-group.ts';

const MOST_IN_WINDOW = 20;
const WINDOW_MS = 60_000;
const MOST_ADDRESSES = 10_000;

/**
 * Counts the rejected API keys of each address, an IPv6 one by its /64: 20 a minute. At most 10,000 addresses; the one
 * that began longest ago goes first.
 */
export class BadKeys {
  readonly #clock: Clock;
  /** Those whose window began first stand first. */
  readonly #windows = new Map<string, { readonly endsAt: number; count: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notes one; answers after how many seconds the next may be tried, 0 where that is at once. */
  note(address: string): number {
    const group = addressGroup(address);
    const now = this.#clock.now();
    let window = this.#windows.get(group);
    if (!window || window.endsAt <= now) {
      this.#windows.delete(group);
      this.#makeRoom();
      this.#windows.set(group, window = { endsAt: now + WINDOW_MS, count: 0 });
    }
    window.count += 1;
    return window.count > MOST_IN_WINDOW ? Math.ceil((window.endsAt - now) / 1_000) : 0;
  }

  #makeRoom(): void {
    if (this.#windows.size < MOST_ADDRESSES) return;
    for (const first of this.#windows.keys()) return void this.#windows.delete(first);
  }
}
