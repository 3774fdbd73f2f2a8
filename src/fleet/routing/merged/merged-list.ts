import { z } from 'zod';
import { invalidArgument } from '../../../model/refusals.ts';
import type { Answer } from '../../../http/corridor/route.ts';
import { itemInFleet } from '../fleet-names.ts';
import type { FleetDeps } from '../fleet-router.ts';
import {
  askedClusters,
  countParts,
  readEach,
  sayMissing,
  type ClusterReader,
  type MergedTerms,
} from './gathered.ts';

/** How deep a page may lie: what stands before it is read from each cluster. */
const MOST_DEEP = 10_000;
const MOST_OF_PAGE = 1_000;
/** More than any cluster has, and few enough that all together have an exact sum. */
const MOST_OF_CLUSTER = 1_000_000_000;

/**
 * One page of a list over all clusters, newest first, and of one age in the order of the clusters.
 * `total` is exact over the clusters that answered; where some did not, or not to the end,
 * `incomplete` says so, and a Warning names them. A page that lies deep is read in steps. Of many
 * clusters each is asked for its share and some more first, since the newest are seldom on one
 * cluster alone, and those for a whole page of which everything that came is in it.
 */
export const mergedList = async (deps: FleetDeps, terms: MergedTerms): Promise<Answer> => {
  const { limit, offset } = terms.request.query as {
    readonly limit: number;
    readonly offset: number;
  };
  const end = offset + limit;
  if (end > MOST_DEEP)
    throw invalidArgument(
      'offset',
      `must lie within the first ${MOST_DEEP} over several clusters; name one by clusterID`,
    );
  const { asked, missing } = askedClusters(deps, terms.request);
  const part = countParts(terms.request.room);
  const lists = new Map(asked.map(({ clusterId }) => [clusterId, new ClusterList(clusterId)]));
  const silent = [...missing];
  let first: readonly Item[] = [];
  let short: readonly ClusterList[] = [...lists.values()];
  let most = firstCount(end, lists.size);
  while (short.length > 0) {
    const meant = new Set(short.map(({ clusterId }) => clusterId));
    const read = await readEach(
      deps,
      { ...terms, part, asked: asked.filter(({ clusterId }) => meant.has(clusterId)) },
      async (reader) =>
        lists.get(reader.clusterId)?.readOn(reader, most, { again: end <= MOST_OF_PAGE }),
    );
    for (const clusterId of read.silent) lists.get(clusterId)?.end();
    silent.push(...read.silent);
    first = [...lists.values()]
      .flatMap(({ items }) => items)
      .sort(byAge)
      .slice(0, end);
    const places = new Map(first.map((item, at) => [item, at]));
    // others of it may come before the end
    const lastOf = ({ items }: ClusterList) => places.get(items.at(-1) as Item) ?? end;
    const cutOff = [...lists.values()].filter(({ isWhole }) => !isWhole);
    short = cutOff.filter((list) => lastOf(list) < end - 1);
    const settled = Math.min(...short.map(lastOf)) + 1;
    most = end <= MOST_OF_PAGE ? end : Math.min(MOST_OF_PAGE, end - settled);
    // all at once: else one silent cluster after the other would make it last
    if (read.silent.length > 0 && short.length > 0) short = cutOff;
  }
  return {
    status: 200,
    body: {
      items: first.slice(offset).map(({ clusterId, item }) => itemInFleet(clusterId, item)),
      total: [...lists.values()].reduce((sum, { total }) => sum + total, 0),
      limit,
      offset,
      ...sayMissing(terms.context, silent),
    },
  };
};

interface Item {
  readonly at: string;
  readonly clusterId: string;
  readonly item: object;
}

/** One cluster's list, as far as it is read. */
class ClusterList {
  readonly clusterId: string;
  readonly items: Item[] = [];
  total = 0;
  /** There is no more than was read. */
  isWhole = false;

  constructor(clusterId: string) {
    this.clusterId = clusterId;
  }

  /** Reads so many more; `again`: from the first one. */
  async readOn(
    { ask }: ClusterReader,
    most: number,
    { again }: { readonly again: boolean },
  ): Promise<void> {
    const offset = again ? 0 : this.items.length;
    const { items, total } = pageIn(await ask({ limit: most, offset }), most);
    this.items.length = offset;
    let oldest = this.items.at(-1)?.at ?? LATEST;
    for (const item of items) {
      const age = ageOf(item);
      if (age < oldest) oldest = age; // it stays after those before it, whatever it says of itself
      this.items.push({ at: oldest, clusterId: this.clusterId, item });
    }
    this.total = total;
    this.isWhole = items.length < most || this.items.length >= total; // whatever it says of more
  }

  /** It says nothing more. */
  end(): void {
    this.isWhole = true;
  }
}

/** So many clusters are each asked for a whole page. */
const FEW = 8;
/** Each of more is asked for so many times its share of a page, and some items more. */
const SHARES = 2;
const SPARE = 3;

const firstCount = (end: number, clusters: number): number =>
  Math.min(
    clusters <= FEW ? end : Math.ceil((SHARES * end) / clusters) + SPARE,
    ...[end, MOST_OF_PAGE],
  );

/** After any timestamp. */
const LATEST = '\u{10ffff}';

const List = z.object({
  items: z.array(z.looseObject({})),
  total: z.int().min(0).max(MOST_OF_CLUSTER),
});

/** Throws where it is none, is longer than was asked, or has less in all than it shows. */
const pageIn = (body: object, most: number): z.infer<typeof List> => {
  const page = List.parse(body);
  if (page.items.length > most) throw new Error('the cluster shows more than it was asked');
  if (page.total < page.items.length) throw new Error('the cluster counts less than it shows');
  return page;
};

/** Orders items by age alone: the sort is stable, so lists and what is in them keep their order. */
const byAge = (a: Item, b: Item): number => (a.at > b.at ? -1 : a.at < b.at ? 1 : 0);

/** Timestamps of one form, so that their text has their order. */
const ageOf = (item: object): string => {
  const { claimedAt, createdAt } = item as {
    readonly claimedAt?: unknown;
    readonly createdAt?: unknown;
  };
  const at = claimedAt ?? createdAt;
  return typeof at === 'string' ? at : '';
};
