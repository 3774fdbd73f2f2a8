import { z } from 'zod';
import { invalidArgument } from '../../model/refusals.ts';
import type { Answer } from '../router/route.ts';
import { itemInFleet } from './fleet-names.ts';
import type { FleetDeps } from './fleet-router.ts';
import {
  askedClusters,
  readEach,
  sayMissing,
  type Gathered,
  type MergedTerms,
} from './gathered.ts';

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
  const { asked, missing } = askedClusters(deps, terms.request);
  const { parts, silent } = await readEnough(deps, { ...terms, asked }, offset + limit);
  const incomplete = sayMissing(terms.context, [...missing, ...silent]);
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

type Parts = Gathered<Page>['parts'];

/**
 * Reads so much of each list that the first `count` items of all are among it. Of many clusters
 * each is asked for its share and some more first, and those for all that the page may hold of
 * which everything that came is in it: the newest are seldom on one cluster alone, and what is read
 * in vain costs more than another turn. Where one of these is silent then, the rest is read in a
 * third: what it gave first made others look as though less of them were in the page.
 */
const readEnough = async (
  deps: FleetDeps,
  terms: Parameters<typeof readEach>[1],
  count: number,
): Promise<{ readonly parts: Parts; readonly silent: readonly string[] }> => {
  const { asked } = terms;
  const read = (of: typeof asked, most: number) =>
    readEach(deps, { ...terms, asked: of }, ({ ask }) =>
      readFirst(async (limit, offset) => pageIn(await ask({ limit, offset })), most),
    );
  const share = Math.ceil((SHARES * count) / asked.length) + SPARE;
  if (asked.length <= FEW || share >= count) return await read(asked, count);
  const first = await read(asked, share);
  const short = fullyShown(first.parts, { count, share });
  if (short.size === 0) return first;
  const again = await read(
    asked.filter(({ clusterId }) => short.has(clusterId)),
    count,
  );
  const others = first.parts.filter(({ clusterId }) => !short.has(clusterId));
  const cutOff = others.filter(({ part: { items, total } }) => items.length < total);
  const more = new Set(again.silent.length > 0 ? cutOff.map(({ clusterId }) => clusterId) : []);
  const rest = await read(
    asked.filter(({ clusterId }) => more.has(clusterId)),
    count,
  );
  const kept = others.filter(({ clusterId }) => !more.has(clusterId));
  const whole = new Map(
    [...kept, ...again.parts, ...rest.parts].map((each) => [each.clusterId, each]),
  );
  return {
    // in the order in which they were asked, which tells two of one age apart
    parts: first.parts.flatMap(({ clusterId }) => whole.get(clusterId) ?? []),
    silent: [...first.silent, ...again.silent, ...rest.silent],
  };
};

/** Finds clusters that may have more of the first `count` than the `share` that was read. */
const fullyShown = (
  parts: Parts,
  { count, share }: { readonly count: number; readonly share: number },
): ReadonlySet<string> => {
  const shown = new Set(
    byAge(parts)
      .slice(0, count)
      .map(({ item }) => item),
  );
  return new Set(
    parts
      .filter(({ part: { items, total } }) => {
        const last = items.at(-1);
        return items.length >= share && total > share && last !== undefined && shown.has(last);
      })
      .map(({ clusterId }) => clusterId),
  );
};

/** So many clusters are each asked for a whole page. */
const FEW = 8;
/** Each of more is asked for so many times its share of a page, and some items more. */
const SHARES = 2;
const SPARE = 3;

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
