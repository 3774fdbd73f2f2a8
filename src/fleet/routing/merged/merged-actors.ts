import { z } from 'zod';
import { malformedName, readName } from '../../../http/corridor/local-names.ts';
import type { Answer, AnyRequest } from '../../../http/corridor/route.ts';
import {
  MOST_PLACE_CURSOR,
  placeIn,
  placeText,
  type Place,
} from '../../../model/fleet/cluster-positions.ts';
import { actorInFleet } from '../fleet-names.ts';
import type { FleetDeps } from '../fleet-router.ts';
import {
  askedClusters,
  countParts,
  isOfRequest,
  readerOf,
  sayMissing,
  type ClusterReader,
  type MergedTerms,
} from './gathered.ts';

/** Read one after the other. */
const MOST_OF_PAGE = 8;

const Page = z.object({
  items: z.array(z.looseObject({ kind: z.string(), key: z.string(), name: z.string() })).max(1_000),
  next: z.string().max(MOST_PLACE_CURSOR).optional(),
  replica: z.string(),
});

/** Goes cluster by cluster. A pool name without a cluster belongs to the manager's own. */
export const mergedActors = async (deps: FleetDeps, terms: MergedTerms): Promise<Answer> => {
  const { request, context } = terms;
  const signal = request.signal();
  const { limit, cursor } = request.query as { readonly limit: number; readonly cursor?: string };
  const start = cursor === undefined ? undefined : placeIn(cursor);
  const { asked, missing } = askedClusters(deps, { query: ofPool(deps, request) });
  const left = asked.slice(placeOf(asked, start));
  const silent = [...missing];
  const part = countParts(request.room);
  const items: object[] = [];
  let replica = '';
  let next: Place | undefined;
  for (let read = 0; !next && left.length > 0; read += 1) {
    const [cluster] = left.splice(0, 1) as [(typeof left)[number]];
    const { clusterId } = cluster;
    const from = start?.clusterId === clusterId ? start.cursor : '';
    if (items.length >= limit || read >= MOST_OF_PAGE) {
      next = { clusterId, cursor: from };
      break;
    }
    try {
      const reader = readerOf(deps, { ...terms, signal, part }, cluster);
      const page = await pageAfter(reader, from, { limit: limit - items.length, request });
      items.push(...page.items.map((item) => actorInFleet(clusterId, item)));
      replica ||= page.replica;
      if (page.next !== undefined) next = { clusterId, cursor: page.next };
    } catch (error) {
      const isOfAll = signal.aborted || asked.length === 1;
      if (isOfAll || !mayBeLeftOut(cluster, error)) throw error;
      silent.push(clusterId);
    }
  }
  return {
    status: 200,
    body: {
      items,
      next: next ? placeText(next) : undefined,
      replica,
      ...sayMissing(context, silent),
    },
  };
};

const mayBeLeftOut = ({ way }: { readonly way?: unknown }, error: unknown): boolean =>
  way !== undefined && !isOfRequest(error);

const pageAfter = async (
  { ask }: ClusterReader,
  cursor: string,
  { limit, request }: { readonly limit: number; readonly request: AnyRequest },
): Promise<z.infer<typeof Page>> => {
  const from = cursor === '' ? undefined : cursor;
  return Page.parse(await ask({ cursor: from, limit, ...localPool(request) }));
};

/** Refuses a malformed name. */
const ofPool = ({ fleet }: FleetDeps, { query }: AnyRequest): unknown => {
  const { pool } = query as { readonly pool?: string };
  if (pool === undefined) return query;
  const name = readName('actor', pool);
  if (!name) throw malformedName('actor', 'pool');
  return {
    clusterID: fleet.clusterId,
    ...(query as object),
    ...(name.cluster === undefined ? {} : { clusterID: name.cluster }),
  };
};

const localPool = ({ query }: AnyRequest): { readonly pool?: string } => {
  const { pool } = query as { readonly pool?: string };
  const name = pool === undefined ? undefined : readName('actor', pool);
  return name?.cluster === undefined ? {} : { pool: name.local };
};

/** If the cluster is gone, the next by id. */
const placeOf = (
  asked: readonly { readonly clusterId: string; readonly way?: unknown }[],
  start: Place | undefined,
): number => {
  if (!start) return 0;
  const at = asked.findIndex(
    ({ clusterId, way }) =>
      clusterId === start.clusterId || (way !== undefined && clusterId > start.clusterId),
  );
  return at < 0 ? asked.length : at;
};
