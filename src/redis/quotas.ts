import { type Clock, pause } from '../contracts/clock.ts';
import {
  RESERVATION_MS,
  WRITE_MS,
  type Confirmation,
  type QuotaEntry,
  type Quotas,
  type Reservation,
  type ReservedName,
  type ReconciledReservation,
  type UsagePart,
} from '../contracts/coordination/quotas.ts';
import type { UsageRecords } from '../contracts/usage-records.ts';
import type { Log } from '../contracts/log.ts';
import {
  eachResource,
  QUOTA_RESOURCES,
  type QuotaAmounts,
  type QuotaResource,
} from '../model/pools/quota.ts';
import { type Refusal, unavailable } from '../model/refusals.ts';
import type { Tenant } from '../model/tenant.ts';
import type { RedisPlace } from './redis-link.ts';
import { UsageRebuild } from './usage-rebuild.ts';

/** A write allowed by a reservation takes no longer. */
export const REBUILD_WAIT_MS = RESERVATION_MS + WRITE_MS;
/** For reading the records after that wait, with retries. */
const COUNT_MS = 3_000;
const LOOK_EVERY_MS = 100;
/** In one step. */
const SCANNED = 1_000;
/** Exact in Lua's numbers. */
export const NO_LIMIT = 1e15;

export interface RedisQuotasDeps extends RedisPlace {
  readonly log: Log;
  readonly clock: Clock;
  /** Marks its reservations. */
  readonly replica: string;
  readonly usage: UsageRecords;
  readonly replicas: () => readonly string[];
  readonly rebuildWaitMs?: number;
}

/** Rebuilt from the records whenever Redis may have lost data. */
export class RedisQuotas implements Quotas {
  readonly #deps: RedisQuotasDeps;
  readonly #rebuild: UsageRebuild;
  readonly #waitMs: number;

  constructor(deps: RedisQuotasDeps) {
    this.#deps = deps;
    this.#waitMs = deps.rebuildWaitMs ?? REBUILD_WAIT_MS;
    this.#rebuild = new UsageRebuild({ ...deps, waitMs: this.#waitMs });
  }

  async reserve(tenant: Tenant, resource: QuotaResource, entry: QuotaEntry): Promise<boolean> {
    const { name, amount, limit, attempt } = entry;
    const [answer] = await this.#deps.link.run('reserve', this.#keys(tenant, resource), [
      holderOf(this.#deps.replica, attempt),
      name,
      amount,
      Math.min(limit, NO_LIMIT),
    ]);
    if (answer === 'unknown') throw this.unknown(tenant);
    return answer === 'ok';
  }

  async withdraw(
    tenant: Tenant,
    resource: QuotaResource,
    { name, attempt }: ReservedName,
  ): Promise<void> {
    await this.#deps.link.run('withdraw', this.#keys(tenant, resource), [
      holderOf(this.#deps.replica, attempt),
      name,
    ]);
  }

  async confirm(
    tenant: Tenant,
    resource: QuotaResource,
    { name, amount, revision, attempt }: Confirmation,
  ): Promise<void> {
    await this.#deps.link.run('confirm', this.#keys(tenant, resource), [
      holderOf(this.#deps.replica, attempt),
      name,
      amount,
      revision,
    ]);
  }

  async stillReserved(
    tenant: Tenant,
    resource: QuotaResource,
    { name, attempt }: ReservedName,
  ): Promise<boolean> {
    const [answer] = await this.#deps.link.run(
      'still_reserved',
      [this.#deps.keys.usage(tenant, resource)],
      [holderOf(this.#deps.replica, attempt), name],
    );
    return answer === 'yes';
  }

  async release(tenant: Tenant, resource: QuotaResource, name: string): Promise<void> {
    await this.#deps.link.run('release', this.#keys(tenant, resource), [name]);
  }

  async used(tenant: Tenant): Promise<QuotaAmounts> {
    const [known, ...amounts] = await this.#deps.link.run(
      'used',
      QUOTA_RESOURCES.map((resource) => this.#deps.keys.usage(tenant, resource)),
      [],
    );
    if (known !== 'known') throw this.unknown(tenant);
    return eachResource((resource) => Number(amounts[QUOTA_RESOURCES.indexOf(resource)]));
  }

  async whenKnown(tenant: Tenant): Promise<void> {
    const { link, keys, clock } = this.#deps;
    const until = clock.now() + this.#waitMs + COUNT_MS;
    while (
      (
        await link.run(
          'used',
          QUOTA_RESOURCES.map((resource) => keys.usage(tenant, resource)),
          [],
        )
      )[0] !== 'known'
    ) {
      if (clock.now() >= until) throw this.unknown(tenant);
      this.expectUse(tenant);
      await pause(clock, LOOK_EVERY_MS);
    }
  }

  expectUse(tenant: Tenant): void {
    this.#rebuild.expect(tenant);
  }

  /** Usage outlives the replica. */
  async restore(): Promise<void> {}

  async unreconciled(
    tenant: Tenant,
    resource: QuotaResource,
    olderThanMs: number,
  ): Promise<readonly Reservation[]> {
    const [answer, ...names] = await this.#deps.link.run(
      'unreconciled',
      this.#keys(tenant, resource),
      [olderThanMs],
    );
    if (answer === 'unknown') this.expectUse(tenant);
    return pairsOf(names).map(([name, version]) => ({ name, version }));
  }

  async parts(tenant: Tenant, resource: QuotaResource): Promise<readonly UsagePart[]> {
    const key = this.#deps.keys.usage(tenant, resource);
    const parts: UsagePart[] = [];
    for (let cursor = '0', first = true; first || cursor !== '0'; first = false) {
      const [next, entries] = await this.#deps.link.call((client) =>
        client.hscan(key, cursor, 'COUNT', SCANNED),
      );
      for (const [name, text] of pairsOf(entries))
        if (!name.startsWith(':')) parts.push(usagePartOf(name, text));
      cursor = next;
    }
    return parts;
  }

  async reconcile(
    tenant: Tenant,
    resource: QuotaResource,
    settled: readonly ReconciledReservation[],
  ): Promise<void> {
    if (settled.length === 0) return;
    await this.#deps.link.run(
      'reconcile',
      this.#keys(tenant, resource),
      settled.flatMap(({ name, version, amount, revision = '' }) => [
        name,
        version,
        amount,
        revision,
      ]),
    );
  }

  /** Also requests a rebuild. */
  unknown(tenant: Tenant): Refusal {
    this.expectUse(tenant);
    return unavailable(
      'usage is being recounted; try again shortly',
      Math.ceil(this.#waitMs / 1_000),
    );
  }

  #keys(tenant: Tenant, resource: QuotaResource): readonly [string, string] {
    return [
      this.#deps.keys.usage(tenant, resource),
      this.#deps.keys.pendingReservations(tenant, resource),
    ];
  }
}

export const holderOf = (replica: string, attempt: string | undefined): string =>
  attempt === undefined ? replica : `${replica}/${attempt}`;

/** Parses `amount|version|parts` (lua/include/usage_entry.lua). */
const usagePartOf = (name: string, text: string): UsagePart => {
  const [amount = '0', version = '', parts = ''] = text.split('|');
  return {
    name,
    amount: Number(amount),
    version,
    isReserved: parts.split(',').some((part) => part !== '' && !part.includes('@')),
  };
};

const pairsOf = (list: readonly unknown[]): readonly (readonly [string, string])[] =>
  Array.from(
    { length: list.length / 2 },
    (_, i) => [String(list[2 * i]), String(list[2 * i + 1])] as const,
  );
