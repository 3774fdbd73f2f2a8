import type { Clock } from '../../contracts/clock.ts';
import type { Caller } from '../../model/tenant.ts';

/** Longer than such a token is good. */
const KEPT_MS = 60_000;
const MOST_TOKENS = 20_000;

/**
 * Remembers to whom other clusters gave tokens of terminals: who brings one names no key, and what
 * is passed on ends with the key of who asked, and counts as theirs.
 */
export class TokenOwners {
  readonly #clock: Clock;
  readonly #owners = new Map<string, { readonly caller: Caller; readonly endsAt: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  remember(clusterId: string, token: string, caller: Caller): void {
    const now = this.#clock.now();
    for (const [oldest, { endsAt }] of this.#owners) {
      if (endsAt > now && this.#owners.size < MOST_TOKENS) break;
      this.#owners.delete(oldest);
    }
    this.#owners.set(`${clusterId} ${token}`, { caller, endsAt: now + KEPT_MS });
  }

  /** Undefined of a token that was not given over this manager. */
  ownerOf(clusterId: string, token: string): Caller | undefined {
    return this.#owners.get(`${clusterId} ${token}`)?.caller;
  }
}
