import type {
  Confirmation,
  QuotaEntry,
  Quotas,
  ReservedName,
} from '../../contracts/coordination/quotas.ts';
import type { Revision } from '../../model/identifiers.ts';
import { eachResource, type QuotaResource } from '../../model/pools/quota.ts';
import { isNewer } from '../../model/mirror/revision-order.ts';
import { tenantKey, type Tenant } from '../../model/tenant.ts';

/** A name's part of a usage: what its record said last, and what is reserved, by attempt. */
interface Part {
  settled: number;
  revision: Revision;
  readonly open: Map<string, number>;
}

interface Usage {
  total: number;
  readonly parts: Map<string, Part>;
}

/** Keeps what each user uses of each resource, by name. Bounded by the users' limits. */
export class Usages {
  readonly #usages = new Map<string, Usage>();

  reserve(
    tenant: Tenant,
    resource: QuotaResource,
    { name, amount, limit, attempt = '' }: QuotaEntry,
  ): boolean {
    const usage = this.#usage(tenant, resource);
    const known = usage.parts.get(name);
    const part: Part = {
      settled: known?.settled ?? 0,
      revision: known?.revision ?? '',
      open: new Map(known?.open).set(attempt, amount),
    };
    const grown = amountOf(part) - amountOf(known);
    if (grown > 0 && usage.total + grown > limit) return false;
    this.#put(usage, name, part);
    return true;
  }

  withdraw(tenant: Tenant, resource: QuotaResource, { name, attempt = '' }: ReservedName): void {
    this.#change(usageKey(tenant, resource), name, ({ open, ...part }) => ({
      ...part,
      open: without(open, attempt),
    }));
  }

  confirm(
    tenant: Tenant,
    resource: QuotaResource,
    { name, amount, revision, attempt = '' }: Confirmation,
  ): void {
    this.#change(usageKey(tenant, resource), name, (part) => ({
      ...part,
      open: without(part.open, attempt),
      ...(isNewer(revision, part.revision) ? { settled: amount, revision } : {}),
    }));
  }

  restore(
    tenant: Tenant,
    resource: QuotaResource,
    { name, amount }: { readonly name: string; readonly amount: number },
  ): void {
    this.#put(this.#usage(tenant, resource), name, {
      settled: amount,
      revision: '',
      open: new Map(),
    });
  }

  remove(tenant: Tenant, resource: QuotaResource, name: string): void {
    this.#change(usageKey(tenant, resource), name, () => ({
      settled: 0,
      revision: '',
      open: new Map(),
    }));
  }

  total(tenant: Tenant, resource: QuotaResource): number {
    return this.#usages.get(usageKey(tenant, resource))?.total ?? 0;
  }

  isReserved(tenant: Tenant, resource: QuotaResource, { name, attempt }: ReservedName): boolean {
    const open = this.#usages.get(usageKey(tenant, resource))?.parts.get(name)?.open;
    return open !== undefined && (attempt === undefined ? open.size > 0 : open.has(attempt));
  }

  #usage(tenant: Tenant, resource: QuotaResource): Usage {
    const key = usageKey(tenant, resource);
    const usage = this.#usages.get(key) ?? { total: 0, parts: new Map<string, Part>() };
    this.#usages.set(key, usage);
    return usage;
  }

  /** Changes a name's part of the usage that has this key, if both are there. */
  #change(key: string, name: string, change: (part: Part) => Part): void {
    const usage = this.#usages.get(key);
    const part = usage?.parts.get(name);
    if (!usage || !part) return;
    this.#put(usage, name, change(part));
    if (usage.parts.size === 0) this.#usages.delete(key);
  }

  #put(usage: Usage, name: string, part: Part): void {
    usage.total += amountOf(part) - amountOf(usage.parts.get(name));
    if (part.open.size === 0 && part.settled === 0 && part.revision === '')
      usage.parts.delete(name);
    else usage.parts.set(name, part);
  }
}

/**
 * Quotas of the one replica there is: a reservation is known by its process alone, so there is
 * never one to settle.
 */
export const inProcessQuotas = (usages: Usages): Quotas => ({
  reserve: async (tenant, resource, entry) => usages.reserve(tenant, resource, entry),
  withdraw: async (tenant, resource, reserved) => usages.withdraw(tenant, resource, reserved),
  confirm: async (tenant, resource, confirmation) => usages.confirm(tenant, resource, confirmation),
  stillReserved: async (tenant, resource, reserved) =>
    usages.isReserved(tenant, resource, reserved),
  release: async (tenant, resource, name) => usages.remove(tenant, resource, name),
  used: async (tenant) => eachResource((resource) => usages.total(tenant, resource)),
  whenKnown: async () => undefined,
  expectUse: () => undefined,
  restore: async (tenant, resource, part) => usages.restore(tenant, resource, part),
  unreconciled: async () => [],
  parts: async () => [],
  reconcile: async () => undefined,
});

const amountOf = (part: Part | undefined): number =>
  part ? Math.max(part.settled, ...part.open.values()) : 0;

const without = (open: ReadonlyMap<string, number>, attempt: string): Map<string, number> => {
  const left = new Map(open);
  left.delete(attempt);
  return left;
};

const usageKey = (tenant: Tenant, resource: QuotaResource): string =>
  `${resource}/${tenantKey(tenant)}`;
