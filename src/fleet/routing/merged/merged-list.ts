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
  type AskedCluster,
  type ClusterReader,
  type EachTerms,
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
 * `incomplete` says so, and a Warning names them.
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
  const lists = new ClusterLists(deps, { ...terms, asked, part });
  const items = await lists.read(offset, end);
  return {
    status: 200,
    body: {
      items: items.map(({ clusterId, item }) => itemInFleet(clusterId, item)),
      total: lists.total,
      limit,
      offset,
      ...sayMissing(terms.context, [...missing, ...lists.silent]),
    },
  };
};

interface Item {
  readonly at: string;
  readonly clusterId: string;
  readonly item: object;
}

/** One cluster's list, as far as it is read: what was read is held until it is taken. */
class ClusterList {
  readonly cluster: AskedCluster;
  #items: readonly Item[] = [];
  #read = 0;
  #taken = 0;
  #total = 0;
  #isWhole = false;

  constructor(cluster: AskedCluster) {
    this.cluster = cluster;
  }

  get items(): readonly Item[] {
    return this.#items;
  }

  get total(): number {
    return this.#total;
  }

  /** Whether there is more than was read, after the last of `items`. */
  get isCutOff(): boolean {
    return !this.#isWhole;
  }

  /** Reads so many more; where a page has all of them, those before them again. */
  async readOn({ ask, clusterId }: ClusterReader, most: number): Promise<void> {
    const wanted = Math.min(MOST_OF_PAGE, most);
    const from = most <= MOST_OF_PAGE && this.#taken === 0 ? 0 : this.#read;
    const { items, total } = pageIn(await ask({ limit: wanted, offset: from }), wanted);
    const before = from === 0 ? [] : this.#items;
    let oldest = before.at(-1)?.at ?? LATEST;
    const read = items.map((item) => {
      const age = ageOf(item);
      if (age < oldest) oldest = age; // it stays after those before it, whatever it says of itself
      return { at: oldest, clusterId, item };
    });
    this.#items = [...before, ...read];
    this.#read = from + items.length;
    this.#total = total;
    this.#isWhole = items.length < wanted || this.#read >= total; // whatever it says of more
  }

  /** It says nothing more. */
  end(): void {
    this.#isWhole = true;
  }

  take(count: number): void {
    this.#taken += count;
    this.#items = this.#items.slice(count);
  }
}

/** After any timestamp. */
const LATEST = '\u{10ffff}';

/** The lists of all clusters, read as far as a page needs them. */
class ClusterLists {
  readonly #deps: FleetDeps;
  readonly #terms: EachTerms;
  readonly #lists: readonly ClusterList[];
  readonly silent: string[] = [];

  constructor(deps: FleetDeps, terms: EachTerms) {
    this.#deps = deps;
    this.#terms = terms;
    this.#lists = terms.asked.map((cluster) => new ClusterList(cluster));
  }

  get total(): number {
    return this.#lists.reduce((sum, { total }) => sum + total, 0);
  }

  /**
   * Resolves with the items from one place to another of all. Of many clusters each is asked for
   * its share and some more first, and those for all that the page may hold of which everything
   * that came is in it: the newest are seldom on one cluster alone, and what is read in vain costs
   * more than another turn. Where one of these is silent then, all that are cut off are read, so
   * that no cluster after the other makes it last. A page that lies deep is read in steps.
   */
  async read(from: number, to: number): Promise<readonly Item[]> {
    const shown: Item[] = [];
    let place = 0;
    await this.#readOn(this.#lists, firstCount(to, this.#lists.length));
    for (;;) {
      const known = this.#lists.flatMap(({ items }) => items).sort(byAge);
      const { settled, short } = this.#settled(known, to - place);
      const page = known.slice(Math.max(0, from - place), settled);
      if (short.length === 0) return [...shown, ...page];
      if (to > MOST_OF_PAGE) {
        shown.push(...page);
        place += settled;
        this.#take(known.slice(0, settled)); // is held no longer
      }
      const silent = this.silent.length;
      await this.#readOn(short, to - place);
      if (this.silent.length > silent) await this.#readOn(this.#cutOff, to - place);
    }
  }

  get #cutOff(): readonly ClusterList[] {
    return this.#lists.filter(({ isCutOff }) => isCutOff);
  }

  /**
   * Finds how many of `known` are the first of all, `most` at most, and where that is fewer which
   * lists may have others among them.
   */
  #settled(
    known: readonly Item[],
    most: number,
  ): { readonly settled: number; readonly short: readonly ClusterList[] } {
    const places = new Map(known.slice(0, most).map((item, at) => [item, at]));
    let settled = Math.min(most, known.length);
    const short = this.#cutOff.filter(({ items }) => {
      const last = items.at(-1);
      const at = last && places.get(last);
      if (at === undefined || at === most - 1) return false;
      settled = Math.min(settled, at + 1);
      return true;
    });
    return { settled, short };
  }

  #take(items: readonly Item[]): void {
    const taken = new Map<string, number>();
    for (const { clusterId } of items) taken.set(clusterId, (taken.get(clusterId) ?? 0) + 1);
    for (const list of this.#lists) list.take(taken.get(list.cluster.clusterId) ?? 0);
  }

  /** Reads so many more of each; what one that is silent had said before stays. */
  async #readOn(lists: readonly ClusterList[], most: number): Promise<void> {
    const byId = new Map(lists.map((list) => [list.cluster.clusterId, list]));
    const asked = lists.map(({ cluster }) => cluster);
    const { silent } = await readEach(this.#deps, { ...this.#terms, asked }, async (reader) =>
      byId.get(reader.clusterId)?.readOn(reader, most),
    );
    this.silent.push(...silent);
    for (const clusterId of silent) byId.get(clusterId)?.end();
  }
}

const firstCount = (end: number, clusters: number): number =>
  clusters <= FEW ? end : Math.min(end, Math.ceil((SHARES * end) / clusters) + SPARE);

/** So many clusters are each asked for a whole page. */
const FEW = 8;
/** Each of more is asked for so many times its share of a page, and some items more. */
const SHARES = 2;
const SPARE = 3;

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
