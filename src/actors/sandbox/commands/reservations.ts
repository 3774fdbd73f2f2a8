import { randomUUID } from 'node:crypto';
import { isSameData } from '../../../lib/plain-data.ts';
import type { Clock } from '../../../contracts/clock.ts';
import {
  RESERVATION_MS,
  type QuotaEntry,
  type Quotas,
} from '../../../contracts/coordination/quotas.ts';
import { type Coordination } from '../../../contracts/coordination.ts';
import { OutcomeUnknown } from '../../../contracts/sandbox-driver.ts';
import type { PoolRecord, Unresolved } from '../../../model/pools/pool.ts';
import {
  amountsOfPool,
  SIZED_RESOURCES,
  type QuotaResource,
  type SizedResource,
} from '../../../model/pools/quota.ts';
import { poolQuotaExceeded } from '../../../model/limit-refusals.ts';
import { Refusal, unavailable } from '../../../model/refusals.ts';
import type { Tenant } from '../../../model/tenant.ts';
import type { QuotaLimits } from '../../pool/commands/quota-limits.ts';

export interface Reserved {
  readonly tenant: Tenant;
  readonly name: string;
  readonly attempt?: string;
  readonly resources: readonly QuotaResource[];
  readonly since: number;
}

/**
 * Resolves with a time from which the write may be sent for RESERVATION_MS. Refuses with
 * `unavailable` if the reservation is old and no longer counts.
 */
export const requireReserved = async (
  {
    coordination,
    clock,
  }: { readonly coordination: Pick<Quotas, 'stillReserved'>; readonly clock: Clock },
  reserved: Reserved,
): Promise<number> => {
  const now = clock.now();
  if (now - reserved.since <= RESERVATION_MS) return reserved.since;
  for (const resource of reserved.resources) {
    if (!(await coordination.stillReserved(reserved.tenant, resource, reserved)))
      throw unavailable('your usage was recounted during the request; try again');
  }
  return now;
};

export interface ResizingDeps {
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly quotaLimits: Pick<QuotaLimits, 'of'>;
}

export type Parts = readonly (readonly [resource: QuotaResource, entry: QuotaEntry])[];

/**
 * In a fixed order, so that one of two concurrent requests succeeds. Returns the first resource
 * over its limit.
 */
export const reserveAll = async (
  coordination: Pick<Quotas, 'reserve'>,
  owner: Tenant,
  parts: Parts,
): Promise<QuotaResource | undefined> => {
  for (const [resource, entry] of parts)
    if (!(await coordination.reserve(owner, resource, entry))) return resource;
  return undefined;
};

/**
 * Each attempt of the conditional write covers its own growth. The largest amount of any attempt
 * counts until its outcome is known.
 */
export class Resizing {
  readonly #deps: ResizingDeps;
  readonly #pool: Pick<PoolRecord, 'uid' | 'owner'>;
  readonly #attempt = randomUUID();
  readonly #changed = new Set<SizedResource>();
  readonly #reserved = new Set<SizedResource>();
  #reservedAt: number | undefined;

  constructor(deps: ResizingDeps, { uid, owner }: Pick<PoolRecord, 'uid' | 'owner'>) {
    this.#deps = deps;
    this.#pool = { uid, owner };
  }

  /** Call it before each attempt. Refuses growth with QUOTA_EXCEEDED; never refuses a decrease. */
  async cover(current: PoolRecord, next: PoolRecord): Promise<void> {
    const { coordination, clock, quotaLimits } = this.#deps;
    const { uid, owner } = this.#pool;
    const [before, after] = [amountsOfPool(current), amountsOfPool(next)];
    for (const resource of SIZED_RESOURCES)
      if (after[resource] !== before[resource]) this.#changed.add(resource);
    const grown = SIZED_RESOURCES.filter((resource) => after[resource] > before[resource]);
    if (grown.length === 0) return;
    const limits = quotaLimits.of(owner);
    this.#reservedAt = clock.now();
    for (const resource of grown) this.#reserved.add(resource);
    const refused = await reserveAll(
      coordination,
      owner,
      grown.map((resource) => [
        resource,
        { name: uid, attempt: this.#attempt, amount: after[resource], limit: limits[resource] },
      ]),
    );
    if (refused !== undefined) throw poolQuotaExceeded(refused);
  }

  readonly permitted = (): boolean =>
    this.#reservedAt === undefined || this.#deps.clock.now() - this.#reservedAt <= RESERVATION_MS;

  /** Reconciliation repairs a failed call; never rejects. */
  async landed(record: PoolRecord): Promise<void> {
    const { uid, owner } = this.#pool;
    const { revision } = record;
    const amounts = amountsOfPool(record);
    await Promise.allSettled(
      [...this.#changed].map((resource) =>
        this.#deps.coordination.confirm(owner, resource, {
          name: uid,
          attempt: this.#attempt,
          amount: amounts[resource],
          revision,
        }),
      ),
    );
  }

  /** If the write may still land, the reservations are reconciled later. Never rejects. */
  async failed(error: unknown): Promise<void> {
    if (error instanceof OutcomeUnknown) return;
    const { uid, owner } = this.#pool;
    await Promise.allSettled(
      [...this.#reserved].map((resource) =>
        this.#deps.coordination.withdraw(owner, resource, { name: uid, attempt: this.#attempt }),
      ),
    );
  }
}

/** Reserves nothing. Refuses with QUOTA_EXCEEDED. */
export const requireRoom = async (
  deps: ResizingDeps,
  current: PoolRecord,
  next: PoolRecord,
): Promise<void> => {
  const resizing = new Resizing(deps, current);
  try {
    await resizing.cover(current, next);
  } finally {
    await resizing.failed(undefined);
  }
};

export const withinQuota = async (
  resizing: Resizing,
  current: PoolRecord,
  { next, otherwise }: { readonly next: PoolRecord; readonly otherwise: PoolRecord },
): Promise<PoolRecord> => {
  try {
    await resizing.cover(current, next);
    return next;
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'QUOTA_EXCEEDED') throw error;
    return isSameData(otherwise.unresolved, NOT_GRANTED)
      ? otherwise
      : { ...otherwise, unresolved: NOT_GRANTED };
  }
};

const NOT_GRANTED: Unresolved = {
  reason: 'QuotaExceeded',
  message: "its instances would exceed its owner's quota of cpu or memory (GET /quotas)",
};
