import { z } from 'zod';
import type { Answer } from '../../../http/corridor/route.ts';
import type { FleetDeps } from '../fleet-router.ts';
import { gather, type MergedTerms } from './gathered.ts';
import { QUOTA_RESOURCES } from '../../../model/pools/quota.ts';

const count = z.int().min(0);
const Counts = z.object({
  statistics: z.object({
    total: count,
    byStatus: z.record(z.string(), count),
    byNamespace: z.record(z.string(), count),
  }),
});

export const mergedStatistics = async (deps: FleetDeps, terms: MergedTerms): Promise<Answer> => {
  const { parts, incomplete } = await gather(
    deps,
    terms,
    async ({ ask }) => Counts.parse(await ask({})).statistics,
  );
  const all = parts.map(({ part }) => part);
  return {
    status: 200,
    body: {
      statistics: {
        total: all.reduce((sum, { total }) => sum + total, 0),
        byStatus: summed(all.map(({ byStatus }) => byStatus)),
        byNamespace: summed(all.map(({ byNamespace }) => byNamespace)),
      },
      ...incomplete,
    },
  };
};

const summed = (maps: readonly Readonly<Record<string, number>>[]): object => {
  const sums = new Map<string, number>();
  for (const map of maps)
    for (const [name, value] of Object.entries(map)) sums.set(name, (sums.get(name) ?? 0) + value);
  return Object.fromEntries(sums);
};

const amount = z.number().min(0).max(Number.MAX_SAFE_INTEGER);
const Quotas = z.object({
  items: z
    .array(
      z.object({
        name: z.string(),
        resource: z.enum(QUOTA_RESOURCES),
        limit: amount,
        used: amount,
        remaining: amount,
      }),
    )
    .max(QUOTA_RESOURCES.length),
});

/** Each cluster keeps its own quotas. Leaves out a resource that one cluster does not limit. */
export const mergedQuotas = async (deps: FleetDeps, terms: MergedTerms): Promise<Answer> => {
  const { parts, incomplete } = await gather(
    deps,
    terms,
    async ({ ask }) => Quotas.parse(await ask({})).items,
  );
  const items = QUOTA_RESOURCES.flatMap((resource) => {
    const of = parts.map(({ part }) => part.find((each) => each.resource === resource));
    const limited = of.filter((each) => each !== undefined);
    const [first] = limited;
    if (!first || limited.length < of.length) return [];
    const sum = (field: 'limit' | 'used' | 'remaining'): number =>
      limited.reduce((total, each) => total + each[field], 0);
    return [
      {
        ...{ name: first.name, resource, limit: sum('limit'), used: sum('used') },
        remaining: sum('remaining'),
      },
    ];
  });
  return { status: 200, body: { items, total: items.length, ...incomplete } };
};
