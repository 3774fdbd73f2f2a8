import type { Caller } from '../../model/tenant.ts';
import { invalidArgument } from '../../model/refusals.ts';
import type { WayToCluster } from '../../operations/fleet/fleet-operations.ts';
import type { Answer, AnyRequest } from '../router/route.ts';
import type { Context } from '../server/context.ts';
import { itemInFleet } from './fleet-names.ts';
import type { FleetDeps } from './fleet-router.ts';
import { readObject } from './passed-answer.ts';

/** How deep a page may lie: what stands before it is read from each cluster. */
const MOST_DEEP = 10_000;
const MOST_OF_PAGE = 1_000;
const MOST_PAGE_BYTES = 32 << 20;
/** For a cluster to send one page. */
const PAGE_MS = 10_000;

interface Page {
  readonly items: readonly object[];
  readonly total: number;
}

/** Reads so many items of one cluster's list, from the newest. */
type Read = (limit: number, offset: number) => Promise<Page>;

export interface MergedTerms {
  readonly caller: Caller;
  readonly context: Context;
  readonly request: AnyRequest;
  /** The list of the manager's own cluster. */
  readonly own: (query: object) => Promise<Answer> | Answer;
}

/**
 * One page of a list over all clusters, newest first, and of one age in the order of the clusters.
 * `total` is exact over the clusters that answered; where some did not, `incomplete` says so, and a
 * Warning names them.
 */
export const mergedList = async (
  deps: FleetDeps,
  { caller, context, request, own }: MergedTerms,
): Promise<Answer> => {
  const { limit, offset } = request.query as { readonly limit: number; readonly offset: number };
  if (offset + limit > MOST_DEEP)
    throw invalidArgument(
      'offset',
      `must lie within the first ${MOST_DEEP} over several clusters; name one by poolName`,
    );
  const { fleet, passing } = deps;
  const signal = request.signal();
  const readOwn: Read = async (count, from) =>
    pageIn((await own({ ...(request.query as object), limit: count, offset: from })).body);
  const readAway =
    (way: WayToCluster): Read =>
    async (count, from) => {
      const query = new URLSearchParams(context.querystring);
      query.set('limit', String(count));
      query.set('offset', String(from));
      const answer = await passing.pass({
        way,
        caller,
        request: context.req,
        requestId: context.state.requestId,
        signal,
        withinMs: PAGE_MS,
        target: `${context.path}?${query.toString()}`,
      });
      if (answer.statusCode !== 200) {
        answer.destroy();
        throw new Error(`the cluster answered ${String(answer.statusCode)}`);
      }
      return pageIn(await readObject(answer, MOST_PAGE_BYTES));
    };
  const missing: string[] = [];
  const sources = [{ clusterId: fleet.clusterId, read: readOwn }];
  for (const { clusterId, status } of fleet.listOthers()) {
    if (status === 'Connected')
      sources.push({ clusterId, read: (...page) => readAway(fleet.wayTo(clusterId))(...page) });
    else missing.push(clusterId);
  }
  const lists = await Promise.all(
    sources.map(async ({ clusterId, read }) => {
      try {
        return { clusterId, ...(await readFirst(read, offset + limit)) };
      } catch (error) {
        if (clusterId === fleet.clusterId || signal.aborted) throw error;
        missing.push(clusterId);
        return { clusterId, items: [], total: 0 };
      }
    }),
  );
  if (missing.length > 0)
    context.append('Warning', `199 - "no answer from the clusters ${missing.sort().join(', ')}"`);
  return {
    status: 200,
    body: {
      items: merged(lists).slice(offset, offset + limit),
      total: lists.reduce((sum, { total }) => sum + total, 0),
      limit,
      offset,
      ...(missing.length > 0 ? { incomplete: true } : {}),
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

const pageIn = (body: object): Page => {
  const { items, total } = body as { readonly items?: unknown; readonly total?: unknown };
  if (!Array.isArray(items) || items.length > MOST_OF_PAGE || !Number.isSafeInteger(total))
    throw new Error('the cluster sent no list');
  return { items: items as object[], total: total as number };
};

const merged = (lists: readonly (Page & { readonly clusterId: string })[]): readonly object[] =>
  lists
    .flatMap(({ clusterId, items }) =>
      items.map((item) => ({ at: ageOf(item), item: itemInFleet(clusterId, item) })),
    )
    // stable: each list keeps its own order
    .sort((a, b) => (a.at > b.at ? -1 : a.at < b.at ? 1 : 0))
    .map(({ item }) => item);

/** Timestamps of one form, so that their text has their order. */
const ageOf = (item: object): string => {
  const { claimedAt, createdAt } = item as {
    readonly claimedAt?: unknown;
    readonly createdAt?: unknown;
  };
  const at = claimedAt ?? createdAt;
  return typeof at === 'string' ? at : '';
};
