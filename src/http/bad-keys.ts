import type { Clock } from '../contracts/clock.ts';
import { RateWindows } from '../model/rate-windows.ts';
import { addressGroup } from './address-group.ts';

const MOST_IN_WINDOW = 20;
const WINDOW_MS = 60_000;

/** Counts the rejected API keys of each address, an IPv6 one by its /64: 20 a minute. At most 10,000 addresses; the one that began longest ago goes first. */
export class BadKeys {
  readonly #windows: RateWindows;

  constructor(clock: Clock) {
    this.#windows = new RateWindows(clock);
  }

  /** Notes one; answers after how many seconds the next may be tried, 0 where that is at once. */
  note(address: string): number {
    return Math.ceil(this.#windows.count(addressGroup(address), MOST_IN_WINDOW, WINDOW_MS).retryAfterMs / 1_000);
  }
}
