import { setTimeout as later } from 'node:timers/promises';
import { Allowances } from '../../lib/allowance.ts';

/** Refusals of one tenant that are answered at once, and how many a second after those. */
export const REFUSALS_AT_ONCE = 50;
const REFUSALS_PER_SECOND = 100;
export const MOST_HELD_MS = 3_000;
/** Refusals of all tenants that are held at one time: each is up to 20 kB of memory. */
export const MOST_HELD = 4_096;

export interface RefusalPaceTerms {
  /** Milliseconds that only grow; absent: the process' own. */
  readonly now?: () => number;
  /** Resolves after so many ms; absent: by a timer that keeps no process alive. */
  readonly wait?: (ms: number) => Promise<void>;
}

/**
 * Holds back answers that refuse for want of room (429, 503), so that a client that asks again at
 * once is refused a hundred times a second and not as often as the machine can. Beyond so many at
 * one time they are answered at once: what is held takes memory.
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

  /** Resolves when the refusal may be answered, after `leastMs` or more; undefined: at once. */
  hold(tenant: string, leastMs = 0): Promise<void> | undefined {
    const now = this.#now();
    const own = this.#ofTenant.of(tenant, now);
    const dueMs = own.waitMs(now);
    if (dueMs <= MOST_HELD_MS) own.spend(1, now);
    // What came all at once would come again all at once, were it answered so.
    const heldMs = dueMs <= MOST_HELD_MS ? dueMs : MOST_HELD_MS * (1 - Math.random() / 2);
    const ms = Math.max(leastMs, heldMs);
    if (ms <= 0 || this.#held >= MOST_HELD) return undefined;
    this.#held += 1;
    return this.#wait(ms).finally(() => {
      this.#held -= 1;
    });
  }
}
