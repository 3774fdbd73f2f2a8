import { randomBytes } from 'node:crypto';
import type { Clock } from '../contracts/clock.ts';
import type { Coordination, EventLog, Lease, QuotaEntry, Quotas } from '../contracts/coordination.ts';
import type { KeptAnswers } from './kept-answers.ts';
import { ActivityMarks } from './activity-marks.ts';
import { EVENT_NUMBERS_PER_MS, EventRing } from '../model/event-ring.ts';
import { RateWindows } from '../model/rate-windows.ts';
import { unavailable } from '../model/refusals.ts';
import { SHARDS } from '../model/shards.ts';
import { tenantKey, type Tenant } from '../model/tenant.ts';

/**
 * Coordination for the one replica there is: in memory, gone with the process, but for the answers that are kept. Usage is
 * restored from the records by whoever starts it.
 */
export const inProcessCoordination = (clock: Clock, answers: KeptAnswers, replica = 'local'): Coordination => {
  const tokens = new TokenDrawer(clock);
  const activity = new ActivityMarks(clock);
  const windows = new RateWindows(clock);

  return {
    ...inProcessQuotas(),
    ...inProcessEvents(clock),
    issueToken: async (value, ttlMs) => tokens.issue(value, ttlMs),
    redeemToken: async (token) => tokens.redeem(token),
    openRequest: (mark) => answers.open(mark),
    keepAnswer: (mark, owner, answer) => answers.keep(mark, owner, answer),
    giveUpRequest: async (mark) => answers.giveUp(mark),
    touch: (id) => activity.touch(id),
    expire: async (id, of) => activity.expire(id, of),
    markEnded: async (id, end) => activity.markEnded(id, end),
    ended: async (id) => activity.ended(id),
    countWithin: async (name, limit, windowMs) => windows.count(name, limit, windowMs),
    lease: () => ONLY_LEASE,
    follow: (listener) => {
      for (let shard = 0; shard < SHARDS; shard++) listener.gained(shard);
      return () => undefined;
    },
    giveUp: async () => undefined,
    leave: () => undefined,
    replicas: () => [replica],
    holders: () => new Map(Array.from({ length: SHARDS }, (_, shard) => [shard, replica])),
    describe: () => ({ problems: [], warnings: [] }),
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

/** A reservation is known by its process alone, so there is never one to settle. */
const inProcessQuotas = (): Quotas => {
  const usages = new Map<string, Usage>();
  const keyOf = (tenant: Tenant, resource: string): string => `${resource}/${tenantKey(tenant)}`;
  const put = (key: string, { name, amount, limit }: Omit<QuotaEntry, 'request'>): boolean => {
    const usage = usages.get(key) ?? { total: 0, amounts: new Map<string, number>() };
    const total = usage.total - (usage.amounts.get(name) ?? 0) + amount;
    if (total > limit) return false;
    usage.amounts.set(name, amount);
    usage.total = total;
    usages.set(key, usage);
    return true;
  };
  const remove = (key: string, name: string): void => {
    const usage = usages.get(key);
    if (!usage) return;
    usage.total -= usage.amounts.get(name) ?? 0;
    usage.amounts.delete(name);
    if (usage.amounts.size === 0) usages.delete(key);
  };

  return {
    reserve: async (tenant, resource, entry) => put(keyOf(tenant, resource), entry),
    withdraw: async (tenant, resource, name) => remove(keyOf(tenant, resource), name),
    move: async (tenant, resource, from, entry) => {
      remove(keyOf(tenant, resource), from);
      return put(keyOf(tenant, resource), entry);
    },
    stillReserved: async (tenant, resource, name) => usages.get(keyOf(tenant, resource))?.amounts.has(name) ?? false,
    release: async (tenant, resource, name) => remove(keyOf(tenant, resource), name),
    expectUse: () => undefined,
    restore: async (tenant, resource, part) => { put(keyOf(tenant, resource), { ...part, limit: Number.POSITIVE_INFINITY }); },
    unsettled: async () => [],
    settle: async () => undefined,
  };
};

/** One replica tells each event once. None is known from before it began. */
const inProcessEvents = (clock: Clock): EventLog => {
  const ring = new EventRing(clock.now() * EVENT_NUMBERS_PER_MS);
  return {
    publishEvent: (event, _key, told) => {
      const id = Math.max(ring.last + 1, event.at * EVENT_NUMBERS_PER_MS);
      ring.add({ id, event });
      told?.(id);
    },
    followEvents: (...call) => ring.follow(...call),
  };
};

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
