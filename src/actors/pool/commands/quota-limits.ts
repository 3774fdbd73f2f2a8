import { omitUndefined } from '../../../lib/plain-data.ts';
import type { Clock } from '../../../contracts/clock.ts';
import { RecordExists, type Records } from '../../../contracts/record-store.ts';
import { RecordConflict } from '../../../contracts/sandbox-driver.ts';
import { RecordMirror } from '../../runtime/record-mirror.ts';
import {
  NO_SIZE_LIMITS,
  sizeLimitOf,
  type QuotaAmounts,
  type QuotaResource,
  type UserQuota,
} from '../../../model/pools/quota.ts';
import { Refusal, unavailable } from '../../../model/refusals.ts';
import { tenantKey, type Tenant } from '../../../model/tenant.ts';

/** Users with limits of their own that are kept in memory. */
const MOST_USERS = 100_000;
/**
 * Tries of one change: of as many changes at once each is carried out, as one stands in every
 * round.
 */
const MOST_ATTEMPTS = 16;

/** As they are configured, in quantities. */
export const quotaDefaults = ({
  cpu,
  memory,
  ...limits
}: Omit<QuotaAmounts, 'cpu' | 'memory'> & {
  readonly cpu?: string;
  readonly memory?: string;
}): QuotaAmounts => ({
  ...limits,
  cpu: (cpu === undefined ? undefined : sizeLimitOf('cpu', cpu)) ?? NO_SIZE_LIMITS.cpu,
  memory:
    (memory === undefined ? undefined : sizeLimitOf('memory', memory)) ?? NO_SIZE_LIMITS.memory,
});

export interface QuotaLimitsDeps {
  readonly quotas: Records<UserQuota>;
  readonly clock: Clock;
  /** Limits of whoever has none of their own; `cpu` and `memory` may have none. */
  readonly defaults: Omit<QuotaAmounts, keyof typeof NO_SIZE_LIMITS> & Partial<QuotaAmounts>;
}

/** A limit for each that is named. */
export type QuotaChange = Readonly<Partial<Record<QuotaResource, number | 'none'>>>;

/**
 * Knows what each user may have, so that a claim needs no read. `start()` reads the store once;
 * afterwards it follows what anybody writes.
 */
export class QuotaLimits {
  readonly #store: Records<UserQuota>;
  readonly #defaults: QuotaAmounts;
  readonly #own: RecordMirror<UserQuota>;

  constructor({ quotas, clock, defaults }: QuotaLimitsDeps) {
    this.#store = quotas;
    const { cpu = NO_SIZE_LIMITS.cpu, memory = NO_SIZE_LIMITS.memory } = defaults;
    this.#defaults = { ...defaults, cpu, memory };
    this.#own = new RecordMirror({
      records: quotas,
      clock,
      keyOf: tenantKey,
      storeKeyOf: tenantKey,
      mostRemoved: 0,
    });
  }

  async start(): Promise<void> {
    await this.#own.start();
  }

  /** As this replica knows them. */
  of(tenant: Tenant): QuotaAmounts {
    return this.#with(this.#own.get(tenantKey(tenant)));
  }

  /** As they stand; from here on `of` says no older ones. */
  async read(tenant: Tenant): Promise<QuotaAmounts> {
    return this.#with(await this.#own.lookUp(tenantKey(tenant)));
  }

  /**
   * Changes the limits that are named; the others stay, and `none` takes one's own away. Durable
   * when it resolves. Refuses with CONFLICT where no more users can have limits of their own.
   */
  async set({ namespace, team, user }: Tenant, change: QuotaChange): Promise<QuotaAmounts> {
    const tenant = { namespace, team, user };
    for (let attempt = 1; ; attempt += 1) {
      const before = await this.#store.get(tenantKey(tenant));
      if (!before && this.#own.size >= MOST_USERS)
        throw new Refusal(
          'CONFLICT',
          `${MOST_USERS} users have their own limits, which is the maximum`,
        );
      const limits: Partial<QuotaAmounts> = Object.fromEntries(
        Object.entries({ ...before?.limits, ...omitUndefined(change) }).filter(
          ([, limit]) => limit !== 'none',
        ),
      );
      try {
        const record = before
          ? await this.#store.update({ ...before, limits })
          : await this.#store.create({ ...tenant, limits });
        return this.#with(record);
      } catch (error) {
        if (!(error instanceof RecordConflict || error instanceof RecordExists)) throw error;
        if (attempt === MOST_ATTEMPTS)
          throw unavailable('another request is changing these limits; try again');
      }
    }
  }

  #with(own: UserQuota | undefined): QuotaAmounts {
    return own ? { ...this.#defaults, ...omitUndefined(own.limits) } : this.#defaults;
  }
}
