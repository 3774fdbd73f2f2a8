import { randomUUID } from 'node:crypto';
import type { Supervisor } from '../../sandbox/supervisor.ts';
import type { Clock } from '../../../contracts/clock.ts';
import { RESERVATION_MS, type Quotas } from '../../../contracts/coordination/quotas.ts';
import type { Denial, Grant, Grants } from '../../../contracts/grants.ts';
import { OutcomeUnknown } from '../../../contracts/sandbox-driver.ts';
import type { PoolRecord } from '../../../model/pools/pool.ts';
import {
  amountsOfPool,
  BYTES_PER_MEMORY_UNIT,
  CPU_UNITS_PER_CORE,
  SIZED_RESOURCES,
  type QuotaResource,
} from '../../../model/pools/quota.ts';
import { formatCpu, formatMemory } from '../../../model/quantities.ts';
import { Refusal } from '../../../model/refusals.ts';
import type { QuotaLimits } from './quota-limits.ts';

export interface GrantPoolsDeps {
  readonly coordination: Pick<Quotas, 'reserve' | 'withdraw' | 'confirm' | 'used'>;
  readonly clock: Clock;
  readonly quotaLimits: Pick<QuotaLimits, 'of'>;
  readonly supervisor: Pick<Supervisor, 'reconcileLater'>;
}

type Sized = Pick<PoolRecord, 'uid' | 'owner' | 'replicas' | 'definition'>;

interface Part {
  readonly resource: QuotaResource;
  readonly amount: number;
  readonly more: number;
}

const UNKNOWN: Denial = {
  reason: 'QuotaUnknown',
  message: "its owner's usage is not known right now; trying again",
};

/** Grants pools that somebody created or resized by hand, within their owners' quotas. */
export const grantPools = (deps: GrantPoolsDeps): Grants<PoolRecord> => ({
  ask: async (next, before) => {
    const grant = new PoolGrant(deps, next, before);
    return (await grant.reserve()) ?? grant;
  },
});

/** Reservations of other replicas for the same pool don't add up. */
class PoolGrant implements Grant<PoolRecord> {
  readonly #deps: GrantPoolsDeps;
  readonly #pool: Sized;
  readonly #parts: readonly Part[];
  readonly #attempt = randomUUID();
  readonly #since: number;

  constructor(deps: GrantPoolsDeps, next: Sized, before: Sized | undefined) {
    this.#deps = deps;
    this.#pool = next;
    const [after, had] = [amountsOfPool(next), before && amountsOfPool(before)];
    const sized = SIZED_RESOURCES.map((resource): Part => ({
      resource,
      amount: after[resource],
      more: after[resource] - (had?.[resource] ?? 0),
    }));
    this.#parts = had
      ? sized.filter(({ more }) => more > 0)
      : [{ resource: 'pools', amount: 1, more: 1 }, ...sized];
    this.#since = deps.clock.now();
  }

  /** Reserves all parts or none; returns the denial if none. */
  async reserve(): Promise<Denial | undefined> {
    const { coordination, quotaLimits, supervisor } = this.#deps;
    const { owner, uid } = this.#pool;
    if (this.#parts.length > 0) supervisor.reconcileLater(owner);
    try {
      const limits = quotaLimits.of(owner);
      for (const part of this.#parts) {
        const { resource, amount } = part;
        const entry = { name: uid, attempt: this.#attempt, amount, limit: limits[resource] };
        if (await coordination.reserve(owner, resource, entry)) continue;
        await this.#giveBack();
        return await this.#exceeded(part, limits[resource]);
      }
    } catch (error) {
      await this.#giveBack();
      if (error instanceof Refusal && error.code === 'UNAVAILABLE') return UNKNOWN;
      throw error;
    }
    return undefined;
  }

  permitted(): boolean {
    return this.#parts.length === 0 || this.#deps.clock.now() - this.#since <= RESERVATION_MS;
  }

  async landed(record: PoolRecord): Promise<void> {
    const { owner, uid, revision } = record;
    const { coordination } = this.#deps;
    const amounts = amountsOfPool(record);
    const attempt = this.#attempt;
    const isNew = this.#parts.some(({ resource }) => resource === 'pools');
    await Promise.allSettled([
      ...(isNew
        ? [coordination.confirm(owner, 'pools', { name: uid, amount: 1, revision, attempt })]
        : []),
      ...SIZED_RESOURCES.map((resource) =>
        coordination.confirm(owner, resource, {
          name: uid,
          amount: amounts[resource],
          revision,
          attempt,
        }),
      ),
    ]);
  }

  async failed(error: unknown): Promise<void> {
    if (!(error instanceof OutcomeUnknown)) await this.#giveBack();
  }

  /** Keeps other attempts' reservations for the pool. Never rejects. */
  async #giveBack(): Promise<void> {
    const { owner, uid } = this.#pool;
    await Promise.allSettled(
      this.#parts.map(({ resource }) =>
        this.#deps.coordination.withdraw(owner, resource, { name: uid, attempt: this.#attempt }),
      ),
    );
  }

  async #exceeded({ resource, more }: Part, limit: number): Promise<Denial> {
    const { owner } = this.#pool;
    const { team, user } = owner;
    const used = await this.#deps.coordination.used(owner).catch(() => undefined);
    const taken = used ? `, ${inWords(resource, used[resource])} are used` : '';
    return {
      reason: 'QuotaExceeded',
      message:
        `${team}/${user} may have ${inWords(resource, limit)} ${resource}${taken}, and ` +
        `this needs ${inWords(resource, more)} more; request less, free some, or let an admin ` +
        `raise the limit: sandpool quotas set ${team} ${user} --admin`,
    };
  }
}

const inWords = (resource: QuotaResource, amount: number): string => {
  if (resource === 'cpu') return formatCpu(amount / CPU_UNITS_PER_CORE);
  return resource === 'memory' ? formatMemory(amount * BYTES_PER_MEMORY_UNIT) : String(amount);
};
