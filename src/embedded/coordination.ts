import { randomBytes } from 'node:crypto';
import type { Clock } from '../contracts/clock.ts';
import type { Coordination, Lease } from '../contracts/coordination.ts';
import type { KeptAnswers } from './kept-answers.ts';
import { unavailable } from '../model/refusals.ts';
import { tenantKey } from '../model/tenant.ts';

/**
 * Coordination for the one replica there is: in memory, gone with the process, but for the answers that are kept. Usage is
 * rebuilt from the records by whoever starts it.
 */
export const inProcessCoordination = (clock: Clock, answers: KeptAnswers): Coordination => {
  const usages = new Map<string, Usage>();
  const tokens = new TokenDrawer(clock);
  const usageKey = (tenant: Parameters<typeof tenantKey>[0], resource: string): string => `${resource}/${tenantKey(tenant)}`;

  return {
    reserve: async (tenant, resource, { name, amount, limit }) => {
      const key = usageKey(tenant, resource);
      const usage = usages.get(key) ?? { total: 0, amounts: new Map<string, number>() };
      const total = usage.total - (usage.amounts.get(name) ?? 0) + amount;
      if (total > limit) return false;
      usage.amounts.set(name, amount);
      usage.total = total;
      usages.set(key, usage);
      return true;
    },
    release: async (tenant, resource, name) => {
      const key = usageKey(tenant, resource);
      const usage = usages.get(key);
      if (!usage) return;
      usage.total -= usage.amounts.get(name) ?? 0;
      usage.amounts.delete(name);
      if (usage.amounts.size === 0) usages.delete(key);
    },
    issueToken: async (value, ttlMs) => tokens.issue(value, ttlMs),
    redeemToken: async (token) => tokens.redeem(token),
    openRequest: (mark) => answers.open(mark),
    keepAnswer: (mark, owner, answer) => answers.keep(mark, owner, answer),
    giveUpRequest: async (mark) => answers.giveUp(mark),
    lease: () => ONLY_LEASE,
  };
};

/** Tokens that wait to be redeemed at one time. */
export const MAX_TOKENS = 10_000;

/** One user's parts of one resource; bounded by the user's limit. */
interface Usage {
  total: number;
  readonly amounts: Map<string, number>;
}

const ONLY_LEASE: Lease = { epoch: 1, held: () => true };

class TokenDrawer {
  readonly #clock: Clock;
  readonly #tokens = new Map<string, { readonly value: string; readonly expiresAt: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Refuses with `unavailable` where so many are waiting that one more would not fit. */
  issue(value: string, ttlMs: number): string {
    if (this.#tokens.size >= MAX_TOKENS) this.#sweep();
    if (this.#tokens.size >= MAX_TOKENS) throw unavailable('too many tokens are waiting to be used; try again shortly', 5);
    const token = randomBytes(32).toString('base64url');
    this.#tokens.set(token, { value, expiresAt: this.#clock.now() + ttlMs });
    return token;
  }

  redeem(token: string): string | undefined {
    const found = this.#tokens.get(token);
    this.#tokens.delete(token);
    return found && found.expiresAt > this.#clock.now() ? found.value : undefined;
  }

  #sweep(): void {
    const now = this.#clock.now();
    for (const [token, { expiresAt }] of this.#tokens) if (expiresAt <= now) this.#tokens.delete(token);
  }
}
