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

const MOST_USERS = 100_000;
/** Each round writes one change, so this many concurrent changes all succeed. */
const MOST_ATTEMPTS = 16;

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
  readonly defaults: Omit<QuotaAmounts, keyof typeof NO_SIZE_LIMITS> & Partial<QuotaAmounts>;
}

/** `none` removes the user's own. */
export type QuotaChange = Readonly<Partial<Record<QuotaResource, number | 'none'>>>;

/** In memory, so that a claim needs no read. */
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

  of(tenant: Tenant): QuotaAmounts {
    return this.#with(this.#own.get(tenantKey(tenant)));
  }

  /** Reads uncached; `of` then returns nothing older. */
  async read(tenant: Tenant): Promise<QuotaAmounts> {
    return this.#with(await this.#own.lookUp(tenantKey(tenant)));
  }

  /**
   * Durable when this resolves. Refuses with CONFLICT at the maximum number of users with their own
   * limits.
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
