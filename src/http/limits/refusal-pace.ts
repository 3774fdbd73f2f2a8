import { setTimeout as later } from 'node:timers/promises';
import { Allowances } from '../../lib/allowance.ts';

/** Immediate refusals per tenant, and the rate of further ones. */
export const REFUSALS_AT_ONCE = 50;
const REFUSALS_PER_SECOND = 100;
export const MOST_HELD_MS = 3_000;
/** All tenants together; each takes up to 20 kB. */
export const MOST_HELD = 4_096;

export interface RefusalPaceTerms {
  /** Monotonic, in ms. */
  readonly now?: () => number;
  /** Must not keep the process alive. */
  readonly wait?: (ms: number) => Promise<void>;
}

/**
 * Without delays, a client that retries at once is refused as fast as the machine can. Beyond
 * `MOST_HELD` refusals are immediate, since delayed ones take memory.
 */
export class RefusalPace {
  readonly #now: () => number;
  readonly #wait: (ms: number) => Promise<void>;
  readonly #ofTenant = new Allowances({
    perSecond: REFUSALS_PER_SECOND,
    most: REFUSALS_AT_ONCE - 1,
  });
  #held = 0;

  constructor({
    now = () => performance.now(),
    wait = (ms) => later(ms, undefined, { ref: false }),
  }: RefusalPaceTerms = {}) {
    this.#now = now;
    this.#wait = wait;
  }

  /** Undefined if the refusal may be sent at once. */
  hold(tenant: string, leastMs = 0): Promise<void> | undefined {
    const now = this.#now();
    const own = this.#ofTenant.of(tenant, now);
    const dueMs = own.waitMs(now);
    if (dueMs <= MOST_HELD_MS) own.spend(1, now);
    // Random, so that clients do not retry as one burst.
    const heldMs = dueMs <= MOST_HELD_MS ? dueMs : MOST_HELD_MS * (1 - Math.random() / 2);
    const ms = Math.max(leastMs, heldMs);
    if (ms <= 0 || this.#held >= MOST_HELD) return undefined;
    this.#held += 1;
    return this.#wait(ms).finally(() => {
      this.#held -= 1;
    });
  }
}
