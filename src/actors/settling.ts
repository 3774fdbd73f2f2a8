import type { Clock } from '../contracts/clock.ts';
import type { Quotas, Reservation } from '../contracts/coordination.ts';
import type { Log } from '../contracts/log.ts';
import type { InstanceId } from '../model/identifiers.ts';
import { QUOTA_RESOURCES, type QuotaResource } from '../model/quota.ts';
import type { InstanceRecord } from '../model/sandbox.ts';
import { shardOf } from '../model/shards.ts';
import { sameTenant, tenantKey, type Tenant } from '../model/tenant.ts';
import type { PoolHost } from './pool-host.ts';
import type { SandboxSnapshot } from './sandbox-snapshot.ts';

export interface SettlingDeps {
  readonly quotas: Pick<Quotas, 'unsettled' | 'settle'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly leads: (shard: number) => boolean;
  /** Those who have pools. */
  readonly tenants: () => Iterable<Tenant>;
  /** What the name's record counts, 0 where there is none and no write that was sent before can make one any more. */
  readonly recorded: (tenant: Tenant, resource: QuotaResource, name: string) => Promise<number>;
  /** A pool was reserved, and never made: what was written before its record goes. Asked again where it rejects. */
  readonly unmade: (tenant: Tenant, poolUid: string) => Promise<void>;
}

/** Longer than any write that was allowed by a reservation may be under way. */
export const UNSETTLED_MS = 30_000;
export const SETTLE_EVERY_MS = 10_000;
const MOST_NOTED = 1_000;
/** As many as `unsettled` names at once. */
const BATCH = 100;

/**
 * Has usage say what the records say: who reserved may have died before the record was written, or before it knew. A
 * tenant's is settled by the leader of the shard that the tenant falls into; and wherever one without pools made a reservation.
 */
export class Settling {
  readonly #deps: SettlingDeps;
  readonly #noted = new Map<string, { readonly tenant: Tenant; readonly since: number }>();
  #cancel: (() => void) | undefined;
  #round: Promise<void> = Promise.resolve();
  #running = false;

  constructor(deps: SettlingDeps) { this.#deps = deps; }

  start(): void {
    this.#running = true;
    this.#again();
  }

  /** Resolves once nothing is under way. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#cancel?.();
    await this.#round;
  }

  /** Settled here, whoever leads, until what is reserved by now is old enough to be. */
  note(tenant: Tenant): void {
    const key = tenantKey(tenant);
    if (this.#noted.size < MOST_NOTED || this.#noted.has(key)) this.#noted.set(key, { tenant, since: this.#deps.clock.now() });
  }

  #again(): void {
    const { clock } = this.#deps;
    if (this.#running) this.#cancel = clock.at(clock.now() + SETTLE_EVERY_MS, () => { this.#round = this.#goRound(); });
  }

  /** Never rejects. */
  async #goRound(): Promise<void> {
    const { leads, tenants, log, clock } = this.#deps;
    const now = clock.now();
    const due = new Map([...this.#noted].map(([key, { tenant }]) => [key, tenant]));
    for (const tenant of tenants()) if (leads(shardOf(tenantKey(tenant)))) due.set(tenantKey(tenant), tenant);
    for (const [key, tenant] of due) {
      if (!this.#running) return;
      try {
        for (const resource of QUOTA_RESOURCES) await this.#settle(tenant, resource);
        const noted = this.#noted.get(key);
        if (noted && now - noted.since > UNSETTLED_MS) this.#noted.delete(key);
      } catch (error) {
        log.debug({ tenant: key, error }, 'usage-not-settled');
      }
    }
    this.#again();
  }

  async #settle(tenant: Tenant, resource: QuotaResource): Promise<void> {
    const { quotas } = this.#deps;
    for (let more = true; more && this.#running;) {
      const open = await quotas.unsettled(tenant, resource, UNSETTLED_MS);
      const settled: (Reservation & { readonly amount: number })[] = [];
      for (const reservation of open) settled.push(...await this.#judged(tenant, resource, reservation));
      if (settled.length > 0) await quotas.settle(tenant, resource, settled);
      more = open.length === BATCH && settled.length > 0;
    }
  }

  /** None where it can't be told now. */
  async #judged(tenant: Tenant, resource: QuotaResource, reservation: Reservation): Promise<readonly (Reservation & { readonly amount: number })[]> {
    const { recorded, unmade, log } = this.#deps;
    try {
      const amount = await recorded(tenant, resource, reservation.name);
      if (amount === 0) log.info({ tenant: tenantKey(tenant), resource, name: reservation.name }, 'reservation-without-record');
      if (amount === 0 && resource === 'pools') await unmade(tenant, reservation.name);
      return [{ ...reservation, amount }];
    } catch (error) {
      log.debug({ tenant: tenantKey(tenant), resource, name: reservation.name, error }, 'reservation-not-settled');
      return [];
    }
  }
}

export interface RecordedAmountsDeps {
  readonly pools: Pick<PoolHost, 'recorded'>;
  readonly sandbox: (id: string) => SandboxSnapshot | undefined;
  readonly fence: (id: InstanceId, namespace: string) => Promise<InstanceRecord | undefined>;
}

/** See SettlingDeps. What the mirror shows to be claimed is; all else is read uncached, and an idle record's revision moved. */
export const recordedAmounts = ({ pools, sandbox, fence }: RecordedAmountsDeps): SettlingDeps['recorded'] => async (tenant, resource, name) => {
  if (resource !== 'sandboxes') {
    const pool = await pools.recorded(tenant, name);
    return !pool ? 0 : resource === 'pools' ? 1 : pool.replicas;
  }
  const claim = sandbox(name)?.context.record?.claim ?? (await fence(name, tenant.namespace))?.claim;
  return claim && sameTenant(claim.owner, tenant) ? 1 : 0;
};
