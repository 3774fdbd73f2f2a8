import { clusterUnavailable } from '../../model/fleet/cluster-refusals.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import { sandboxNotFound } from '../../model/refusals.ts';
import { z } from 'zod';
import type { FleetDeps } from '../routing/fleet-router.ts';
import {
  askedClusters,
  countParts,
  readEach,
  sayMissing,
  type ClusterReader,
  type MergedTerms,
} from '../routing/merged/gathered.ts';
import type { Answer } from '../../http/corridor/route.ts';
import { isAbove, isBelow } from '../../http/e2b/control/list-sandboxes.ts';
import {
  MOST_OFFSET,
  MOST_PLACE_MS,
  placeIn,
  tokenOf,
  type ListRequest,
  type Place,
} from '../../http/e2b/control/schema.ts';
import { compatibleId, hasCompatibleIds, sandboxNamed } from '../../http/e2b/sandbox-id.ts';

interface Item {
  readonly claimedAt: number;
  readonly id: string;
  readonly shown: object;
}

interface Part {
  readonly items: readonly Item[];
  /** Undefined at the end of the list. */
  readonly next: Place | undefined;
}

const MOST_OF_PAGE = 100;
const MOST_EMPTY = 4;

/**
 * Returns a page of the running sandboxes of all clusters, by claim time. Leaves out clusters whose
 * ids cannot be part of a sandbox id.
 */
export const listOverClusters = async (deps: FleetDeps, terms: MergedTerms): Promise<Answer> => {
  const { limit, nextToken: place, order } = terms.request.query as ListRequest;
  const isPast = order === 'asc' ? isAbove : isBelow;
  const { asked, missing } = askedClusters(deps, terms.request);
  const own = deps.fleet.clusterId;
  const servable = asked.filter(
    ({ clusterId }) => clusterId === own || hasCompatibleIds(clusterId),
  );
  const part = countParts(terms.request.room);
  const { parts, silent } = await readEach(deps, { ...terms, asked: servable, part }, (reader) =>
    reader.clusterId === own ? readOwn(terms, place) : readAway(reader, { place, limit, isPast }),
  );
  sayMissing(terms.context, [...missing.filter(hasCompatibleIds), ...silent]);
  const all = parts
    .flatMap(({ clusterId, part: { items } }) => items.map((item) => ({ clusterId, item })))
    .sort((a, b) => (isPast(b.item, a.item) ? -1 : 1));
  const [horizon] = parts
    .flatMap(({ part: { next } }) => (next ? [next] : []))
    .sort((a, b) => (isPast(b, a) ? -1 : 1));
  const reached = horizon ? all.filter(({ item }) => !isPast(item, horizon)) : all;
  const shown = reached.slice(0, limit);
  const last = reached.length > limit ? shown.at(-1)?.item : horizon;
  const offsets = parts.map(({ clusterId, part: { items, next } }): [string, number] => {
    const its = shown.filter((each) => each.clusterId === clusterId).length;
    const before = offsetOf(place, clusterId, own) + its;
    const offset = next && its === items.length ? next.offset : before;
    return [clusterId, Math.min(offset, MOST_OFFSET)];
  });
  return {
    status: 200,
    body: shown.map(({ item }) => item.shown),
    headers: last ? { 'x-next-token': tokenOf(placeOf(last, offsets, own)) } : {},
  };
};

const placeOf = (
  { claimedAt, id }: Pick<Place, 'claimedAt' | 'id'>,
  offsets: readonly (readonly [string, number])[],
  own: string,
): Place => ({
  ...{ claimedAt, id },
  offset: offsets.find(([clusterId]) => clusterId === own)?.[1] ?? 0,
  others: new Map(offsets.filter(([clusterId]) => clusterId !== own)),
});

/** A number that is too low is harmless. */
const offsetOf = (place: Place | undefined, clusterId: string, own: string): number =>
  (clusterId === own ? place?.offset : place?.others?.get(clusterId)) ?? 0;

const readOwn = async ({ own, request }: MergedTerms, place: Place | undefined): Promise<Part> => {
  const { body, headers } = await own({
    query: { ...(request.query as object), nextToken: place },
  });
  return partIn(body, headers?.['x-next-token']);
};

const Away = z.object({
  items: z.array(z.looseObject({ sandboxID: z.string() })).max(MOST_OF_PAGE),
  next: z.string().max(128).optional(),
});

interface AwayTerms extends Pick<ListRequest, 'limit'> {
  readonly place: Place | undefined;
  readonly isPast: typeof isBelow;
}

/** Rejects if the cluster's list is malformed, not its own, or never ends. */
const readAway = async (reader: ClusterReader, terms: AwayTerms): Promise<Part> => {
  let { place } = terms;
  for (let pages = 0; pages < MOST_EMPTY; pages += 1) {
    const part = await readPage(reader, { ...terms, place });
    if (part.items.length > 0 || !part.next) return part;
    place = { ...part.next, others: new Map([[reader.clusterId, part.next.offset]]) };
  }
  throw new Error('the list of the cluster does not end');
};

const readPage = async (
  { ask, clusterId }: ClusterReader,
  { place, limit, isPast }: AwayTerms,
): Promise<Part> => {
  const from = place && { ...place, offset: offsetOf(place, clusterId, ''), others: undefined };
  const answer = Away.parse(await ask({ nextToken: from && tokenOf(from), limit }));
  const { items, next } = partIn(answer.items, answer.next);
  if (next && place && !isPast(next, place))
    throw new Error('the list of the cluster does not advance');
  const past = place ? items.filter((item) => isPast(item, place)) : items;
  return { items: past.map((item) => ({ ...item, shown: listedIn(clusterId, item.shown) })), next };
};

const partIn = (body: object, token: string | undefined): Part => ({
  items: (body as readonly object[]).map((shown) => {
    const { sandboxID, startedAt } = shown as Readonly<Record<string, unknown>>;
    const { id } = sandboxNamed(String(sandboxID)) ?? {};
    const claimedAt = Date.parse(String(startedAt));
    if (id === undefined || !(claimedAt >= 0 && claimedAt <= MOST_PLACE_MS))
      throw new Error('the list has an item without a valid id or claim time');
    return { claimedAt, id, shown };
  }),
  next: token === undefined ? undefined : placeIn(token),
});

export const listedIn = (clusterId: string, item: unknown): object => viewIn(clusterId, item).item;

/** Refuses with CLUSTER_UNAVAILABLE if the sandbox is not the cluster's own. */
export const viewIn = (
  clusterId: string,
  view: unknown,
): { readonly id: InstanceId; readonly item: object } => {
  const shown = (view ?? {}) as Readonly<Record<string, unknown>>;
  const { sandboxID, templateID } = shown;
  const sandbox = typeof sandboxID === 'string' ? sandboxNamed(sandboxID) : undefined;
  if (!hasCompatibleIds(clusterId)) throw sandboxNotFound();
  if (!sandbox || sandbox.clusterId !== undefined || typeof templateID !== 'string')
    throw clusterUnavailable(clusterId, 'answered with an invalid sandbox');
  const item = {
    ...shown,
    sandboxID: compatibleId(sandbox.id, clusterId),
    templateID: `${clusterId}::${templateID}`,
  };
  return { id: sandbox.id, item };
};
