import type { Clock } from '../../contracts/clock.ts';
import type {
  Quotas,
  Reservation,
  ReconciledReservation,
} from '../../contracts/coordination/quotas.ts';
import type { Coordination } from '../../contracts/coordination.ts';
import type { Log } from '../../contracts/log.ts';
import type { InstanceId, Revision } from '../../model/identifiers.ts';
import { amountsOfPool, QUOTA_RESOURCES, type QuotaResource } from '../../model/pools/quota.ts';
import type { InstanceRecord } from '../../model/sandbox.ts';
import { shardOf } from '../../model/shards.ts';
import { sameTenant, tenantKey, type Tenant } from '../../model/tenant.ts';
import type { PoolHost } from '../pool/pool-host.ts';
import type { SandboxHost } from './sandbox-host.ts';
import type { SandboxIndex } from './sandbox-index.ts';
import type { SandboxSnapshot } from './sandbox-snapshot.ts';

export interface ReservationReconcilerDeps {
  readonly quotas: Pick<Quotas, 'unreconciled' | 'reconcile' | 'parts'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly leads: (shard: number) => boolean;
  readonly tenants: () => Iterable<Tenant>;
  /** 0 if no record exists and no earlier write can create it. */
  readonly recorded: (
    tenant: Tenant,
    resource: QuotaResource,
    name: string,
  ) => Promise<RecordedAmount>;
  readonly shown: (tenant: Tenant, resource: QuotaResource) => ReadonlyMap<string, number>;
  /**
   * Deletes what was written before the record of a pool that was never created. Retried if it
   * rejects.
   */
  readonly unmade: (tenant: Tenant, poolUid: string) => Promise<void>;
}

export interface RecordedAmount {
  readonly amount: number;
  readonly revision?: Revision;
}

/** In ms. Longer than any write permitted by a reservation can take. */
export const UNCONFIRMED_MS = 30_000;
export const RECONCILE_EVERY_MS = 10_000;
const COMPARE_EVERY_MS = 60_000;
const MOST_NOTED = 1_000;
const BATCH = 100;
const TENANTS_AT_ONCE = 16;

/** Each as `resource name version`. */
interface Comparison {
  readonly at: number;
  readonly suspects: ReadonlySet<string>;
}

/**
 * A replica may die between a reservation and its record, and a release may get lost. The leader of
 * the tenant's shard reconciles; so does a replica that reserved for a tenant without pools.
 */
export class ReservationReconciler {
  readonly #deps: ReservationReconcilerDeps;
  readonly #noted = new Map<string, { readonly tenant: Tenant; readonly since: number }>();
  #compared = new Map<string, Comparison>();
  #cancel: (() => void) | undefined;
  #round: Promise<void> = Promise.resolve();
  #running = false;

  constructor(deps: ReservationReconcilerDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#running = true;
    this.#again();
  }

  async stop(): Promise<void> {
    this.#running = false;
    this.#cancel?.();
    await this.#round;
  }

  /** On this replica, even if another one leads, until its present reservations are old enough. */
  note(tenant: Tenant): void {
    const key = tenantKey(tenant);
    if (this.#noted.size < MOST_NOTED || this.#noted.has(key))
      this.#noted.set(key, { tenant, since: this.#deps.clock.now() });
  }

  #again(): void {
    const { clock } = this.#deps;
    if (this.#running)
      this.#cancel = clock.at(clock.now() + RECONCILE_EVERY_MS, () => {
        this.#round = this.#goRound();
      });
  }

  /** Never rejects. */
  async #goRound(): Promise<void> {
    const { leads, tenants } = this.#deps;
    const due = new Map([...this.#noted].map(([key, { tenant }]) => [key, tenant]));
    for (const tenant of tenants())
      if (leads(shardOf(tenantKey(tenant)))) due.set(tenantKey(tenant), tenant);
    this.#compared = new Map([...this.#compared].filter(([key]) => due.has(key)));
    const all = [...due.values()];
    for (let at = 0; at < all.length && this.#running; at += TENANTS_AT_ONCE) {
      await Promise.all(
        all.slice(at, at + TENANTS_AT_ONCE).map((tenant) => this.#reconcileAll(tenant)),
      );
    }
    this.#again();
  }

  /** Never rejects. */
  async #reconcileAll(tenant: Tenant): Promise<void> {
    const { clock, log } = this.#deps;
    const key = tenantKey(tenant);
    const now = clock.now();
    try {
      for (const resource of QUOTA_RESOURCES) await this.#reconcile(tenant, resource);
      const compared = this.#compared.get(key);
      if (!compared || compared.suspects.size > 0 || now - compared.at >= COMPARE_EVERY_MS)
        await this.#compare(tenant, now);
      const noted = this.#noted.get(key);
      if (noted && now - noted.since > UNCONFIRMED_MS) this.#noted.delete(key);
    } catch (error) {
      log.debug({ tenant: key, error }, 'usage-not-checked');
    }
  }

  async #reconcile(tenant: Tenant, resource: QuotaResource): Promise<void> {
    const { quotas } = this.#deps;
    for (let more = true; more && this.#running;) {
      const open = await quotas.unreconciled(tenant, resource, UNCONFIRMED_MS);
      const reconciled = await this.#reconcileFromRecords(tenant, resource, open);
      more = open.length === BATCH && reconciled > 0;
    }
  }

  /**
   * Reconciles a mismatch with the mirror that shows twice in a row: a release that Redis missed,
   * an unconfirmed size, or an object changed by hand.
   */
  async #compare(tenant: Tenant, now: number): Promise<void> {
    const before = this.#compared.get(tenantKey(tenant))?.suspects ?? new Set<string>();
    const suspects = new Set<string>();
    for (const resource of QUOTA_RESOURCES) {
      const disagreeing = await this.#disagreeing(tenant, resource);
      for (const { name, version } of disagreeing) suspects.add(`${resource} ${name} ${version}`);
      const again = disagreeing
        .filter(({ name, version }) => before.has(`${resource} ${name} ${version}`))
        .slice(0, BATCH);
      await this.#reconcileFromRecords(tenant, resource, again);
    }
    this.#compared.set(tenantKey(tenant), { at: now, suspects });
  }

  async #disagreeing(tenant: Tenant, resource: QuotaResource): Promise<readonly Reservation[]> {
    const parts = await this.#deps.quotas.parts(tenant, resource);
    const missing = new Map(
      [...this.#deps.shown(tenant, resource)].filter(([, amount]) => amount > 0),
    );
    const disagreeing: Reservation[] = [];
    for (const { name, version, amount, isReserved } of parts) {
      const shown = missing.get(name) ?? 0;
      missing.delete(name);
      if (!isReserved && shown !== amount) disagreeing.push({ name, version });
    }
    for (const name of missing.keys()) disagreeing.push({ name, version: '' });
    return disagreeing.slice(0, BATCH);
  }

  async #reconcileFromRecords(
    tenant: Tenant,
    resource: QuotaResource,
    reservations: readonly Reservation[],
  ): Promise<number> {
    const reconciled: ReconciledReservation[] = [];
    for (const reservation of reservations)
      reconciled.push(...(await this.#judged(tenant, resource, reservation)));
    if (reconciled.length > 0) await this.#deps.quotas.reconcile(tenant, resource, reconciled);
    return reconciled.length;
  }

  async #judged(
    tenant: Tenant,
    resource: QuotaResource,
    reservation: Reservation,
  ): Promise<readonly ReconciledReservation[]> {
    const { recorded, unmade, log } = this.#deps;
    try {
      const { amount, revision } = await recorded(tenant, resource, reservation.name);
      if (amount === 0 && (resource === 'sandboxes' || resource === 'pools'))
        log.info(
          { tenant: tenantKey(tenant), resource, name: reservation.name },
          'reservation-without-record',
        );
      if (amount === 0 && resource === 'pools') await unmade(tenant, reservation.name);
      return [{ ...reservation, amount, revision }];
    } catch (error) {
      log.debug(
        { tenant: tenantKey(tenant), resource, name: reservation.name, error },
        'reservation-not-checked',
      );
      return [];
    }
  }
}

export interface RecordedAmountsDeps {
  readonly pools: Pick<PoolHost, 'recorded'>;
  readonly sandbox: (id: string) => SandboxSnapshot | undefined;
  readonly fence: (id: InstanceId, namespace: string) => Promise<InstanceRecord | undefined>;
}

/**
 * Trusts a claim in the mirror. Reads everything else uncached, and bumps the revision of an idle
 * record.
 */
export const recordedAmounts =
  ({ pools, sandbox, fence }: RecordedAmountsDeps): ReservationReconcilerDeps['recorded'] =>
  async (tenant, resource, name) => {
    if (resource !== 'sandboxes') {
      const pool = await pools.recorded(tenant, name);
      return pool
        ? {
            amount: resource === 'pools' ? 1 : amountsOfPool(pool)[resource],
            revision: pool.revision,
          }
        : { amount: 0 };
    }
    const claim =
      sandbox(name)?.context.record?.claim ?? (await fence(name, tenant.namespace))?.claim;
    return { amount: claim && sameTenant(claim.owner, tenant) ? 1 : 0 };
  };

export const shownAmounts =
  ({
    pools,
    index,
  }: {
    readonly pools: Pick<PoolHost, 'index' | 'get'>;
    readonly index: Pick<SandboxIndex, 'list'>;
  }): ReservationReconcilerDeps['shown'] =>
  (tenant, resource) => {
    const { namespace, team, user } = tenant;
    if (resource === 'sandboxes')
      return new Map(
        index.list({ namespace, team, user }, 0, Number.POSITIVE_INFINITY).ids.map((id) => [id, 1]),
      );
    return new Map(
      pools.index.list(tenant, 0, Number.POSITIVE_INFINITY).ids.map((uid) => {
        const record = pools.get(uid)?.record;
        if (resource === 'pools') return [uid, 1];
        return [uid, record ? amountsOfPool(record)[resource] : 0];
      }),
    );
  };

export const restoreClaims = async (
  actors: SandboxHost['actors'],
  coordination: Pick<Coordination, 'restore'>,
): Promise<void> => {
  for (const id of actors.keys()) {
    const claim = actors.snapshot(id)?.context.record?.claim;
    if (claim) await coordination.restore(claim.owner, 'sandboxes', { name: id, amount: 1 });
  }
};
