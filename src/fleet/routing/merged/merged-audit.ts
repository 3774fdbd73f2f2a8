import { z } from 'zod';
import { invalidArgument } from '../../../model/refusals.ts';
import type { Answer } from '../../../http/corridor/route.ts';
import { isPosition, positionsIn, positionsText } from '../../../model/fleet/cluster-positions.ts';
import type { FleetDeps } from '../fleet-router.ts';
import { gather, type Gathered, type MergedTerms } from './gathered.ts';

const position = z.string().refine((text) => isPosition(text) && text !== '');
const Page = z.object({
  items: z.array(z.looseObject({ time: z.string().min(1), cursor: position })).max(1_000),
  nextCursor: position.optional(),
});

type Page = z.infer<typeof Page>;

/** All lines of the cluster were shown. */
const ENDED = '';

/**
 * Newest first by the writers' clocks. The cursor holds a position per cluster, so each line is
 * shown once and in its cluster's order.
 */
export const mergedAudit = async (deps: FleetDeps, terms: MergedTerms): Promise<Answer> => {
  const { limit, cursor } = terms.request.query as {
    readonly limit: number;
    readonly cursor?: string;
  };
  const positions = cursor === undefined ? new Map<string, string>() : positionsIn(cursor);
  if (!positions) throw invalidArgument('cursor', 'must be a `nextCursor`');
  const { parts, incomplete } = await gather(deps, terms, async ({ clusterId, ask }) => {
    const from = positions.get(clusterId);
    return from === ENDED ? NOTHING : Page.parse(await ask({ cursor: from, limit }));
  });
  const shown = newestOf(parts, limit);
  let isMore = false;
  for (const { clusterId, part } of parts) {
    const taken = shown.filter((line) => line.clusterId === clusterId);
    const isAll = taken.length === part.items.length;
    const next = isAll ? (part.nextCursor ?? ENDED) : taken.at(-1)?.item.cursor;
    if (next !== undefined) positions.set(clusterId, next);
    isMore ||= next !== ENDED;
  }
  const { text, isWhole } = positionsText(positions);
  if (isMore && !isWhole) terms.context.append('Warning', TOO_MANY);
  return {
    status: 200,
    body: {
      items: shown.map(({ clusterId, item }) => ({ ...item, clusterID: clusterId })),
      nextCursor: isMore && isWhole ? text : undefined,
      ...incomplete,
    },
  };
};

const NOTHING: Page = { items: [] };
const TOO_MANY = '199 - "too many clusters for a next page; select a cluster with clusterID"';

/** Keeps the order of each cluster even if its clock jumps. */
const newestOf = (parts: Gathered<Page>['parts'], limit: number) => {
  const left = parts.map(({ clusterId, part: { items } }) => ({ clusterId, items, at: 0 }));
  const shown: { readonly clusterId: string; readonly item: Page['items'][number] }[] = [];
  while (shown.length < limit) {
    let newest: (typeof left)[number] | undefined;
    for (const each of left) if (timeOf(each) > (newest ? timeOf(newest) : '')) newest = each;
    const item = newest?.items[newest.at];
    if (!newest || !item) break;
    shown.push({ clusterId: newest.clusterId, item });
    newest.at += 1;
  }
  return shown;
};

const timeOf = ({ items, at }: { readonly items: Page['items']; readonly at: number }): string =>
  items[at]?.time ?? '';
