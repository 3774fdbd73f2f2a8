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
  /** When it was asked for. */
  readonly since: number;
}

/**
 * Makes sure right before a write that what allowed it still counts. Resolves with the moment since
 * which that is so: for RESERVATION_MS from then on the write may be sent. Refuses with
 * `unavailable` where the reservation is old and counts no more.
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

/** A name's part of each of some resources. */
export type Parts = readonly (readonly [resource: QuotaResource, entry: QuotaEntry])[];

/**
 * Reserves one after the other, so that of two who cross one is granted; returns the first that
 * would pass its limit, undefined where none would.
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
 * Reserves what one change of a pool's size, or of what its instances have, makes it grow by. Each
 * attempt of the conditional write covers its own step from what it read; the largest amount that
 * any attempt of anyone asks for counts until its outcome is known.
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

  /**
   * To be called with what an attempt read and is about to write. Refuses with QUOTA_EXCEEDED;
   * giving back is never refused.
   */
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

  /** Whether the write may be sent at this moment; after that it is to be covered anew. */
  readonly permitted = (): boolean =>
    this.#reservedAt === undefined || this.#deps.clock.now() - this.#reservedAt <= RESERVATION_MS;

  /** Counts what the record says. Never rejects: what could not be told is settled later. */
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

  /**
   * Takes back what was reserved, unless it may have landed: then it is settled later. Never
   * rejects.
   */
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

/** Refuses with QUOTA_EXCEEDED what there is no room for at this moment; reserves nothing. */
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

/**
 * The pool as it is to be, where its owner's quota grants what it takes more; else the other, which
 * says why.
 */
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
