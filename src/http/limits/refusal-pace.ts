import { setTimeout as later } from 'node:timers/promises';
import { TenantsAbout } from './tenants-about.ts';

/** Refusals of one tenant that are answered at once, and how many a second after those. */
export const REFUSALS_AT_ONCE = 50;
const REFUSALS_PER_SECOND = 100;
const INTERVAL_MS = 1_000 / REFUSALS_PER_SECOND;
export const MOST_HELD_MS = 3_000;
/** Counts the groups in which what would be held longer is answered, one after the other. */
export const HELD_GROUPS = 64;
/** Refusals of all tenants that are held at one time: each is up to 20 kB of memory. */
export const MOST_HELD = 4_096;
const MOST_TENANTS = 10_000;

export interface RefusalPaceTerms {
  /** Milliseconds that only grow; absent: the process' own. */
  readonly now?: () => number;
  /** Resolves after so many ms; absent: by a timer that keeps no process alive. */
  readonly wait?: (ms: number) => Promise<void>;
}

/**
 * Holds back answers that refuse for want of room (429, 503), so that a client that asks again at
 * once is refused a hundred times a second and not as often as the machine can. Only beyond 50 at
 * once, only while other tenants are about, and for 3 s at most. What came all at once is not
 * answered all at once when these are over: whoever asks again then would come all at once again.
 * Beyond so many at one time they are answered at once: what is held takes memory.
 */
export class RefusalPace {
  readonly #now: () => number;
  readonly #wait: (ms: number) => Promise<void>;
  readonly #about: TenantsAbout;
  /** By tenant, when the next refusal would be due if none were answered early. */
  readonly #due = new Map<string, number>();
  #held = 0;
  /** How many would have been held longer. */
  #late = 0;

  constructor({
    now = () => performance.now(),
    wait = (ms) => later(ms, undefined, { ref: false }),
  }: RefusalPaceTerms = {}) {
    this.#now = now;
    this.#wait = wait;
    this.#about = new TenantsAbout(now);
  }

  /** Notes one request of the tenant. */
  note(tenant: string): void {
    this.#about.note(tenant);
  }

  /** Resolves when the refusal may be answered; undefined: at once. */
  hold(tenant: string): Promise<void> | undefined {
    const now = this.#now();
    const due = Math.max(now, this.#due.get(tenant) ?? now) + INTERVAL_MS;
    const heldMs = due - now - REFUSALS_AT_ONCE * INTERVAL_MS;
    this.#due.delete(tenant);
    this.#due.set(tenant, heldMs > MOST_HELD_MS ? due - INTERVAL_MS : due);
    if (this.#due.size > MOST_TENANTS)
      for (const first of this.#due.keys()) {
        this.#due.delete(first);
        break;
      }
    if (heldMs <= 0 || this.#held >= MOST_HELD || !this.#about.othersThan(tenant)) return undefined;
    this.#held += 1;
    return this.#wait(heldMs > MOST_HELD_MS ? this.#lateMs() : heldMs).finally(() => {
      this.#held -= 1;
    });
  }

  /** From half of the longest time up to all of it. */
  #lateMs(): number {
    this.#late = (this.#late + 1) % HELD_GROUPS;
    return MOST_HELD_MS * (1 - this.#late / HELD_GROUPS / 2);
  }
}
