import { randomUUID } from 'node:crypto';
import type { Clock } from '../contracts/clock.ts';
import type { QuotaEntry, Quotas, Reservation, UsageRecords } from '../contracts/coordination.ts';
import type { Log } from '../contracts/log.ts';
import { QUOTA_RESOURCES, type QuotaAmounts, type QuotaResource } from '../model/quota.ts';
import { type Refusal, unavailable } from '../model/refusals.ts';
import { tenantKey, type Tenant } from '../model/tenant.ts';
import type { Keys } from './keys.ts';
import type { RedisLink } from './redis-link.ts';
import { BEGIN_REBUILD, END_REBUILD } from './scripts/rebuild.ts';
import { RELEASE } from './scripts/release.ts';
import { RESERVE } from './scripts/reserve.ts';
import { SETTLE, UNSETTLED } from './scripts/settle.ts';
import { STILL_RESERVED } from './scripts/still-reserved.ts';
import { USED } from './scripts/used.ts';
import { WITHDRAW } from './scripts/withdraw.ts';

export const QUOTA_SCRIPTS = [RESERVE, WITHDRAW, RELEASE, STILL_RESERVED, UNSETTLED, SETTLE, USED, BEGIN_REBUILD, END_REBUILD] as const;

/** Longer than any write that a reservation allowed may be under way. */
export const REBUILD_WAIT_MS = 3_000;
const MOST_REBUILDS = 256;
/** More than any limit, and exact in Lua's numbers. */
export const NO_LIMIT = 1e15;

export interface RedisQuotasDeps {
  readonly link: RedisLink;
  readonly keys: Keys;
  readonly log: Log;
  readonly clock: Clock;
  /** This replica's name: whose reservations are whose. */
  readonly replica: string;
  readonly usage: UsageRecords;
  readonly rebuildWaitMs?: number;
}

/** Usage in Redis: a hash of names for each tenant and resource, made anew from the records wherever Redis may have lost some. */
export class RedisQuotas implements Quotas {
  readonly #deps: RedisQuotasDeps;
  readonly #rebuilding = new Map<string, Promise<void>>();

  constructor(deps: RedisQuotasDeps) {
    this.#deps = deps;
  }

  async reserve(tenant: Tenant, resource: QuotaResource, entry: QuotaEntry): Promise<boolean> {
    const { link, replica } = this.#deps;
    const { name, amount, limit } = entry;
    const [answer] = await link.run(RESERVE, this.#keys(tenant, resource), [replica, name, amount, Math.min(limit, NO_LIMIT)]);
    if (answer === 'unknown') throw this.unknown(tenant);
    return answer === 'ok';
  }

  async withdraw(tenant: Tenant, resource: QuotaResource, name: string): Promise<void> {
    await this.#deps.link.run(WITHDRAW, this.#keys(tenant, resource), [this.#deps.replica, name]);
  }

  async stillReserved(tenant: Tenant, resource: QuotaResource, name: string): Promise<boolean> {
    const [answer] = await this.#deps.link.run(STILL_RESERVED, [this.#deps.keys.usage(tenant, resource)], [this.#deps.replica, name]);
    return answer === 'yes';
  }

  async release(tenant: Tenant, resource: QuotaResource, name: string): Promise<void> {
    await this.#deps.link.run(RELEASE, this.#keys(tenant, resource), [name]);
  }

  async used(tenant: Tenant): Promise<QuotaAmounts> {
    const [known, sandboxes, pools, replicas] = await this.#deps.link.run(USED, QUOTA_RESOURCES.map((resource) => this.#deps.keys.usage(tenant, resource)), []);
    if (known !== 'known') throw this.unknown(tenant);
    return { sandboxes: Number(sandboxes), pools: Number(pools), replicas: Number(replicas) };
  }

  expectUse(tenant: Tenant): void {
    for (const resource of QUOTA_RESOURCES) this.#rebuild(tenant, resource);
  }

  /** Usage outlives the replica. */
  async restore(): Promise<void> {}

  async unsettled(tenant: Tenant, resource: QuotaResource, olderThanMs: number): Promise<readonly Reservation[]> {
    const [, ...names] = await this.#deps.link.run(UNSETTLED, this.#keys(tenant, resource), [olderThanMs]);
    return pairsOf(names).map(([name, version]) => ({ name, version }));
  }

  async settle(tenant: Tenant, resource: QuotaResource, settled: readonly (Reservation & { readonly amount: number })[]): Promise<void> {
    if (settled.length === 0) return;
    await this.#deps.link.run(SETTLE, this.#keys(tenant, resource), settled.flatMap(({ name, version, amount }) => [name, version, amount]));
  }

  /** Has all be made known: one of them is seldom lost alone. */
  unknown(tenant: Tenant): Refusal {
    this.expectUse(tenant);
    return unavailable('what is used is being counted anew; try again shortly', Math.ceil(this.#waitMs / 1_000));
  }

  get #waitMs(): number { return this.#deps.rebuildWaitMs ?? REBUILD_WAIT_MS; }

  #keys(tenant: Tenant, resource: QuotaResource): readonly [string, string] {
    return [this.#deps.keys.usage(tenant, resource), this.#deps.keys.unsettled(tenant, resource)];
  }

  /** In the background, once at a time for each; what fails is begun again by the next who asks. */
  #rebuild(tenant: Tenant, resource: QuotaResource): void {
    const key = `${resource}/${tenantKey(tenant)}`;
    if (this.#rebuilding.has(key) || this.#rebuilding.size >= MOST_REBUILDS) return;
    const { log } = this.#deps;
    const fields = { tenant: tenantKey(tenant), resource };
    const work = this.#rebuildOnce(tenant, resource).then(
      (known) => { log.debug({ ...fields, known }, 'usage-rebuilt'); },
      (error: unknown) => { log.warn({ ...fields, error }, 'usage-not-rebuilt'); },
    ).finally(() => this.#rebuilding.delete(key));
    this.#rebuilding.set(key, work);
  }

  async #rebuildOnce(tenant: Tenant, resource: QuotaResource): Promise<boolean> {
    const { link, keys, usage, clock } = this.#deps;
    const rebuild = keys.rebuild(tenant, resource);
    const [answer, wait, token] = await link.run(BEGIN_REBUILD, [keys.usage(tenant, resource), rebuild], [randomUUID(), this.#waitMs]);
    if (answer === 'known') return true;
    await new Promise<void>((resolve) => { clock.at(clock.now() + Number(wait), resolve); });
    const records = await usage.of(tenant, resource);
    const [end] = await link.run(END_REBUILD, [...this.#keys(tenant, resource), rebuild], [String(token), ...[...records].flat()]);
    return end === 'known';
  }
}

const pairsOf = (list: readonly unknown[]): readonly (readonly [string, string])[] =>
  Array.from({ length: list.length / 2 }, (_, i) => [String(list[2 * i]), String(list[2 * i + 1])] as const);
