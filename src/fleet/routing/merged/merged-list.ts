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

/** All items before a page's end are read from each cluster. */
const MOST_DEEP = 10_000;
const MOST_OF_PAGE = 1_000;
/** Exceeds the items of any cluster, and keeps all sums exact. */
const MOST_OF_CLUSTER = 1_000_000_000;

/**
 * Newest first. `total` is exact for the clusters that answered; `incomplete` and a Warning header
 * name others. Many clusters are first asked for a bit more than their share, since the newest
 * items are seldom all on one. A cluster whose items are all on the page is then asked for a whole
 * page.
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
      `must be within the first ${MOST_DEEP} items over several clusters; select a cluster ` +
        'with clusterID',
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
    // such a cluster may have more items before the end of the page
    const lastOf = ({ items }: ClusterList) => places.get(items.at(-1) as Item) ?? end;
    const cutOff = [...lists.values()].filter(({ isWhole }) => !isWhole);
    short = cutOff.filter((list) => lastOf(list) < end - 1);
    const settled = Math.min(...short.map(lastOf)) + 1;
    most = end <= MOST_OF_PAGE ? end : Math.min(MOST_OF_PAGE, end - settled);
    // all together: otherwise silent clusters would time out one after the other
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

class ClusterList {
  readonly clusterId: string;
  readonly items: Item[] = [];
  total = 0;
  isWhole = false;

  constructor(clusterId: string) {
    this.clusterId = clusterId;
  }

  /** `again` starts from the first item. */
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
      if (age < oldest) oldest = age; // keeps the cluster's order, whatever the item's time
      this.items.push({ at: oldest, clusterId: this.clusterId, item });
    }
    this.total = total;
    this.isWhole = items.length < most || this.items.length >= total; // even if it claims more
  }

  end(): void {
    this.isWhole = true;
  }
}

/** Asks up to this many clusters for a whole page each. */
const FEW = 8;
/** Multiple of a cluster's share, if there are more; spare items are added. */
const SHARES = 2;
const SPARE = 3;

const firstCount = (end: number, clusters: number): number =>
  Math.min(
    clusters <= FEW ? end : Math.ceil((SHARES * end) / clusters) + SPARE,
    ...[end, MOST_OF_PAGE],
  );

const LATEST = '\u{10ffff}';

const List = z.object({
  items: z.array(z.looseObject({})),
  total: z.int().min(0).max(MOST_OF_CLUSTER),
});

/** Throws if the page is malformed, longer than requested, or longer than its own total. */
const pageIn = (body: object, most: number): z.infer<typeof List> => {
  const page = List.parse(body);
  if (page.items.length > most) throw new Error('the cluster sent more items than requested');
  if (page.total < page.items.length) throw new Error("the cluster's total is less than its items");
  return page;
};

/** A stable sort keeps the order of clusters and their items. */
const byAge = (a: Item, b: Item): number => (a.at > b.at ? -1 : a.at < b.at ? 1 : 0);

/** Timestamps have one format, so they sort as text. */
const ageOf = (item: object): string => {
  const { claimedAt, createdAt } = item as {
    readonly claimedAt?: unknown;
    readonly createdAt?: unknown;
  };
  const at = claimedAt ?? createdAt;
  return typeof at === 'string' ? at : '';
};
