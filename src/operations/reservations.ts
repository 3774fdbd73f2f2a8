import { randomUUID } from 'node:crypto';
import type { Clock } from '../contracts/clock.ts';
import { RESERVATION_MS, type Coordination, type Quotas } from '../contracts/coordination.ts';
import { OutcomeUnknown } from '../contracts/sandbox-driver.ts';
import type { PoolRecord } from '../model/pool.ts';
import type { QuotaResource } from '../model/quota.ts';
import { poolQuotaExceeded, unavailable } from '../model/refusals.ts';
import type { Tenant } from '../model/tenant.ts';
import type { QuotaLimits } from './quota-limits.ts';

export interface Reserved {
  readonly tenant: Tenant;
  readonly name: string;
  readonly attempt?: string;
  readonly resources: readonly QuotaResource[];
  /** When it was asked for. */
  readonly since: number;
}

/**
 * Makes sure right before a write that what allowed it still counts. Resolves with the moment since which that is so: for
 * RESERVATION_MS from then on the write may be sent. Refuses with `unavailable` where the reservation is old and counts no more.
 */
export const requireReserved = async ({ coordination, clock }: { readonly coordination: Pick<Quotas, 'stillReserved'>; readonly clock: Clock }, reserved: Reserved): Promise<number> => {
  const now = clock.now();
  if (now - reserved.since <= RESERVATION_MS) return reserved.since;
  for (const resource of reserved.resources) {
    if (!await coordination.stillReserved(reserved.tenant, resource, reserved.name, reserved.attempt)) throw unavailable('what you use was counted anew meanwhile; try again');
  }
  return now;
};

export interface ResizingDeps {
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly quotaLimits: Pick<QuotaLimits, 'of'>;
}

/**
 * Reserves what one change of a pool's size grows it by. Each attempt of the conditional write covers its own step from what it
 * read; the largest size that any attempt of anyone asks for counts until its outcome is known.
 */
export class Resizing {
  readonly #deps: ResizingDeps;
  readonly #pool: Pick<PoolRecord, 'uid' | 'owner'>;
  readonly #attempt = randomUUID();
  #reservedAt: number | undefined;
  #resized = false;

  constructor(deps: ResizingDeps, { uid, owner }: Pick<PoolRecord, 'uid' | 'owner'>) {
    this.#deps = deps;
    this.#pool = { uid, owner };
  }

  /** To be called with what an attempt read and is about to write. Refuses with QUOTA_EXCEEDED; giving back is never refused. */
  async cover(current: PoolRecord, next: PoolRecord): Promise<void> {
    const { coordination, clock, quotaLimits } = this.#deps;
    const { uid, owner } = this.#pool;
    this.#resized ||= next.replicas !== current.replicas;
    if (next.replicas <= current.replicas) return;
    const limit = quotaLimits.of(owner).replicas;
    this.#reservedAt = clock.now();
    if (!await coordination.reserve(owner, 'replicas', { name: uid, attempt: this.#attempt, amount: next.replicas, limit })) throw poolQuotaExceeded();
  }

  /** Whether the write may be sent at this moment; after that it is to be covered anew. */
  readonly permitted = (): boolean => this.#reservedAt === undefined || this.#deps.clock.now() - this.#reservedAt <= RESERVATION_MS;

  /** Counts what the record says. Never rejects: what could not be told is settled later. */
  async landed({ replicas, revision }: PoolRecord): Promise<void> {
    if (!this.#resized) return;
    const { uid, owner } = this.#pool;
    await this.#deps.coordination.confirm(owner, 'replicas', { name: uid, attempt: this.#attempt, amount: replicas, revision }).catch(() => undefined);
  }

  /** Takes back what was reserved, unless it may have landed: then it is settled later. Never rejects. */
  async failed(error: unknown): Promise<void> {
    if (this.#reservedAt === undefined || error instanceof OutcomeUnknown) return;
    await this.#deps.coordination.withdraw(this.#pool.owner, 'replicas', this.#pool.uid, this.#attempt).catch(() => undefined);
  }
}
