import { z } from 'zod';
import { invalidArgument } from '../../model/refusals.ts';
import type { Answer } from '../router/route.ts';
import { itemInFleet } from './fleet-names.ts';
import type { FleetDeps } from './fleet-router.ts';
import { gather, type MergedTerms } from './gathered.ts';

/** How deep a page may lie: what stands before it is read from each cluster. */
const MOST_DEEP = 10_000;
const MOST_OF_PAGE = 1_000;
/** More than any cluster has, and few enough that all together have an exact sum. */
const MOST_OF_CLUSTER = 1_000_000_000;

interface Page {
  readonly items: readonly object[];
  readonly total: number;
}

/** Reads so many items of one cluster's list, from the newest. */
type Read = (limit: number, offset: number) => Promise<Page>;

/**
 * One page of a list over all clusters, newest first, and of one age in the order of the clusters.
 * `total` is exact over the clusters that answered; where some did not, `incomplete` says so, and a
 * Warning names them.
 */
export const mergedList = async (deps: FleetDeps, terms: MergedTerms): Promise<Answer> => {
  const { limit, offset } = terms.request.query as {
    readonly limit: number;
    readonly offset: number;
  };
  if (offset + limit > MOST_DEEP)
    throw invalidArgument(
      'offset',
      `must lie within the first ${MOST_DEEP} over several clusters; name one by poolName`,
    );
  const { parts, incomplete } = await gather(deps, terms, ({ ask }) =>
    readFirst(
      async (count, from) => pageIn(await ask({ limit: count, offset: from })),
      offset + limit,
    ),
  );
  return {
    status: 200,
    body: {
      items: byAge(parts)
        .slice(offset, offset + limit)
        .map(({ clusterId, item }) => itemInFleet(clusterId, item)),
      total: parts.reduce((sum, { part: { total } }) => sum + total, 0),
      limit,
      offset,
      ...incomplete,
    },
  };
};

const readFirst = async (read: Read, count: number): Promise<Page> => {
  const items: object[] = [];
  let total = 0;
  do {
    const wanted = Math.min(MOST_OF_PAGE, count - items.length);
    const page = await read(wanted, items.length);
    total = page.total;
    items.push(...page.items);
    if (page.items.length < wanted) break; // whatever it says of more
  } while (items.length < Math.min(count, total));
  return { items, total };
};

const List = z.object({
  items: z.array(z.looseObject({})).max(MOST_OF_PAGE),
  total: z.int().min(0).max(MOST_OF_CLUSTER),
});

/** Throws where it is none, or has less in all than it shows. */
const pageIn = (body: object): Page => {
  const page = List.parse(body);
  if (page.total < page.items.length) throw new Error('the cluster counts less than it shows');
  return page;
};

const byAge = (parts: readonly { readonly clusterId: string; readonly part: Page }[]) =>
  parts
    .flatMap(({ clusterId, part: { items } }) =>
      items.map((item) => ({ at: ageOf(item), clusterId, item })),
    )
    // stable: each list keeps its own order
    .sort((a, b) => (a.at > b.at ? -1 : a.at < b.at ? 1 : 0));

/** Timestamps of one form, so that their text has their order. */
const ageOf = (item: object): string => {
  const { claimedAt, createdAt } = item as {
    readonly claimedAt?: unknown;
    readonly createdAt?: unknown;
  };
  const at = claimedAt ?? createdAt;
  return typeof at === 'string' ? at : '';
};
