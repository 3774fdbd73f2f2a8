import { randomUUID } from 'node:crypto';
import type { Clock } from '../contracts/clock.ts';
import type { TenantUsage, UsageRecords } from '../contracts/usage-records.ts';
import type { Log } from '../contracts/log.ts';
import { QUOTA_RESOURCES } from '../model/pools/quota.ts';
import { shardOf } from '../model/shards.ts';
import { tenantKey, type Tenant } from '../model/tenant.ts';
import type { Keys } from './keys.ts';
import type { RedisLink } from './redis-link.ts';

export interface UsageRebuildDeps {
  readonly link: Pick<RedisLink, 'run'>;
  readonly keys: Keys;
  readonly log: Log;
  readonly clock: Clock;
  readonly replica: string;
  readonly usage: UsageRecords;
  /** They share the work. */
  readonly replicas: () => readonly string[];
  readonly waitMs: number;
}

/** At one time. */
const MOST_TENANTS = 20_000;
/** Some ms of the event loop. */
const AT_ONCE = 64;
/** Tenants whose waits end within this time are read together. */
const TOGETHER_MS = 250;

interface Rebuild {
  readonly tenant: Tenant;
  /** A caller waits for it. */
  readonly isAsked: boolean;
  /** Records may be read from `dueAt`; the token ends the rebuild. */
  begun?: { readonly dueAt: number; readonly token: string };
}

/**
 * Rebuilds many tenants at a time: if one is missing, others most likely are too. They share one
 * wait and one read of the records. Each replica rebuilds its share, after tenants that callers
 * wait for.
 */
export class UsageRebuild {
  readonly #deps: UsageRebuildDeps;
  readonly #rebuilds = new Map<string, Rebuild>();
  #beginning = false;
  #reading = false;
  #cancel: (() => void) | undefined;

  constructor(deps: UsageRebuildDeps) {
    this.#deps = deps;
  }

  /** After a failure, the next caller starts it again. Never throws. */
  expect(tenant: Tenant): void {
    if (!this.#add(tenant, true) || this.#beginning) return;
    this.#beginning = true;
    void this.#begin();
  }

  #add(tenant: Tenant, isAsked: boolean): boolean {
    const key = tenantKey(tenant);
    if (this.#rebuilds.has(key) || this.#rebuilds.size >= MOST_TENANTS) return false;
    const { namespace, team, user } = tenant;
    this.#rebuilds.set(key, { tenant: { namespace, team, user }, isAsked });
    return true;
  }

  /** Never rejects. */
  async #begin(): Promise<void> {
    await Promise.resolve(); // callers of the same turn are served together
    let lacking = await this.#beginAdded();
    // Other tenants, while any is missing.
    const others =
      lacking === 0 ? [] : [...this.#deps.usage.tenants()].filter((tenant) => this.#isOurs(tenant));
    for (let at = 0; at < others.length && lacking > 0; at += AT_ONCE) {
      for (const tenant of others.slice(at, at + AT_ONCE)) this.#add(tenant, false);
      lacking = await this.#beginAdded();
    }
    while (this.#notBegun().length > 0) await this.#beginAdded(); // tenants added since
    this.#beginning = false;
  }

  /** Returns the number of missing tenants. */
  async #beginAdded(): Promise<number> {
    let lacking = 0;
    for (let next = this.#notBegun(); next.length > 0; next = this.#notBegun()) {
      const begun = await Promise.all(next.map((rebuild) => this.#beginOne(rebuild)));
      lacking += begun.filter(Boolean).length;
    }
    this.#arm();
    return lacking;
  }

  #notBegun(): readonly Rebuild[] {
    return [...this.#rebuilds.values()].filter(({ begun }) => !begun).slice(0, AT_ONCE);
  }

  async #beginOne(rebuild: Rebuild): Promise<boolean> {
    const { link, keys, clock, waitMs } = this.#deps;
    const { tenant } = rebuild;
    try {
      const [answer, wait, token] = await link.run(
        'begin_rebuild',
        [keys.rebuild(tenant), ...QUOTA_RESOURCES.map((resource) => keys.usage(tenant, resource))],
        [randomUUID(), waitMs],
      );
      if (answer !== 'known') {
        rebuild.begun = { dueAt: clock.now() + Number(wait), token: String(token) };
        return true;
      }
    } catch (error) {
      this.#deps.log.debug({ tenant: tenantKey(tenant), error }, 'usage-not-rebuilt');
    }
    this.#rebuilds.delete(tenantKey(tenant));
    return false;
  }

  #isOurs(tenant: Tenant): boolean {
    const { replicas, replica } = this.#deps;
    const all = replicas();
    const at = all.indexOf(replica);
    return at < 0 || shardOf(tenantKey(tenant)) % all.length === at;
  }

  #arm(): void {
    const dues = [...this.#rebuilds.values()].flatMap(({ begun }) => (begun ? [begun.dueAt] : []));
    this.#cancel?.();
    if (this.#reading || dues.length === 0) return;
    const first = dues.reduce((least, due) => Math.min(least, due));
    const last = dues.reduce(
      (most, due) => (due <= first + TOGETHER_MS ? Math.max(most, due) : most),
      first,
    );
    this.#cancel = this.#deps.clock.at(last, () => {
      void this.#readDue();
    });
  }

  /** Never rejects. */
  async #readDue(): Promise<void> {
    const { clock, usage, log } = this.#deps;
    this.#reading = true;
    const due = [...this.#rebuilds.values()]
      .filter(({ begun }) => begun !== undefined && begun.dueAt <= clock.now())
      .toSorted((one, other) => Number(other.isAsked) - Number(one.isAsked));
    // Tenants with waiting callers are read first, by themselves.
    const asked = due.findIndex(({ isAsked }) => !isAsked);
    const apart = asked > 0 && asked <= AT_ONCE ? asked : 0;
    try {
      for (const rebuilds of [due.slice(0, apart), due.slice(apart)]) {
        const recorded =
          rebuilds.length === 0 ? undefined : await usage.of(rebuilds.map(({ tenant }) => tenant));
        for (let at = 0; at < rebuilds.length; at += AT_ONCE) {
          await Promise.all(
            rebuilds
              .slice(at, at + AT_ONCE)
              .map((rebuild) => this.#endOne(rebuild, recorded?.get(tenantKey(rebuild.tenant)))),
          );
        }
      }
      log.debug({ tenants: due.length }, 'usage-rebuilt');
    } catch (error) {
      log.warn({ tenants: due.length, error }, 'usage-not-rebuilt');
    }
    for (const { tenant } of due) this.#rebuilds.delete(tenantKey(tenant));
    this.#reading = false;
    this.#arm();
  }

  async #endOne({ tenant, begun }: Rebuild, recorded: TenantUsage | undefined): Promise<void> {
    const { link, keys } = this.#deps;
    const parts = QUOTA_RESOURCES.flatMap((resource) => {
      const named = recorded?.[resource] ?? [];
      return [
        named.length,
        ...named.flatMap(({ name, amount, revision = '' }) => [name, amount, revision]),
      ];
    });
    await link.run(
      'end_rebuild',
      [
        keys.rebuild(tenant),
        ...QUOTA_RESOURCES.flatMap((resource) => [
          keys.usage(tenant, resource),
          keys.pendingReservations(tenant, resource),
        ]),
      ],
      [begun?.token ?? '', ...parts],
    );
    this.#rebuilds.delete(tenantKey(tenant));
  }
}
