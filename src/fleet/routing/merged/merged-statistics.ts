import { z } from 'zod';
import type { Answer } from '../../../http/corridor/route.ts';
import type { FleetDeps } from '../fleet-router.ts';
import { gather, type MergedTerms } from './gathered.ts';

const count = z.int().min(0);
const Counts = z.object({
  statistics: z.object({
    total: count,
    byStatus: z.record(z.string(), count),
    byNamespace: z.record(z.string(), count),
  }),
});

/** The sum over all clusters that answer, or the counts of the one that is named. */
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
