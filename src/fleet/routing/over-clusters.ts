import { clusterNotFound, invalidArgument } from '../../model/refusals.ts';
import type { WayToCluster } from '../replication/fleet-operations.ts';
import { readName } from '../../http/corridor/local-names.ts';
import type { Answer, AnyRequest, Route } from '../../http/corridor/route.ts';
import type { Context } from '../../http/reply/context.ts';
import { isMadeAnywhere, isMerged, namedByQuery, type MergedRow } from './fleet-names.ts';
import type { FleetDeps } from './fleet-router.ts';
import type { MergedTerms } from './gathered.ts';
import { mergedActors } from './merged-actors.ts';
import { mergedAudit } from './merged-audit.ts';
import { mergedEvents } from './merged-events.ts';
import { mergedList } from './merged-list.ts';
import { mergedQuotas } from './merged-quotas.ts';
import { mergedStatistics } from './merged-statistics.ts';

/** Answers for all clusters. */
export type Merge = (deps: FleetDeps, terms: MergedTerms) => Promise<Answer>;

const MERGES: Readonly<Record<MergedRow, Merge>> = {
  listSandboxes: mergedList,
  listPools: mergedList,
  getSandboxStatistics: mergedStatistics,
  getQuotas: mergedQuotas,
  getQuotasOf: mergedQuotas,
  listAudit: mergedAudit,
  listActors: mergedActors,
  followEvents: mergedEvents,
};

/** Finds how a manager answers from all clusters; undefined of a request that is for one. */
export const mergeOf = (
  row: Pick<Route, 'operationId'>,
  request: AnyRequest,
  list?: Merge,
): Merge | undefined =>
  isMerged(row, request) ? (list ?? MERGES[row.operationId as MergedRow]) : undefined;

/**
 * Finds the way by the `clusterID` of a query, or of the body of what is made there; undefined
 * where that is this cluster, or the row is answered from several. Refuses with CLUSTER_NOT_FOUND,
 * also where this is no manager, and with INVALID_ARGUMENT where body and query, or the query and
 * the pool that it names, differ.
 */
export const wayByCluster = (
  { fleet, clusterId }: { readonly fleet?: FleetDeps | undefined; readonly clusterId: string },
  row: Pick<Route, 'operationId'>,
  request: Pick<AnyRequest, 'query' | 'body'>,
  { querystring }: Pick<Context, 'querystring'>,
): WayToCluster | undefined => {
  const asked = namedByQuery(request.query) ?? namedByBody(row, request.body, querystring);
  const whyHere = MADE_HERE[row.operationId];
  if (whyHere !== undefined && (asked ?? clusterId) !== clusterId)
    throw invalidArgument('clusterID', whyHere);
  if (asked !== undefined && (poolsCluster(request.query) ?? asked) !== asked)
    throw invalidArgument('clusterID', 'is another one than that of poolName');
  if (asked === undefined || asked === clusterId) return undefined;
  if (!fleet) throw clusterNotFound();
  return isMerged(row, request) ? undefined : fleet.passing.wayTo(fleet.fleet, asked);
};

/** The cluster before the name of the pool that a query asks for. */
const poolsCluster = (query: unknown): string | undefined => {
  const { poolName } = (query ?? {}) as { readonly poolName?: unknown };
  return typeof poolName === 'string' ? readName('pool', poolName)?.cluster : undefined;
};

const KEY_IS_MADE_HERE = 'must be this cluster, which keeps the key; promote it for the others';
/** The rows that make something on the cluster that is asked alone, and what refuses another. */
const MADE_HERE: Readonly<Record<string, string>> = {
  createEnv: 'must be this cluster, which keeps the env; its members have a clusterID each',
  createApiKey: KEY_IS_MADE_HERE,
  createApiKeyForTenant: KEY_IS_MADE_HERE,
};

/** The query of such a row does not count; one that contradicts the body was meant to. */
const namedByBody = (
  row: Pick<Route, 'operationId'>,
  body: unknown,
  querystring: string,
): string | undefined => {
  if (!isMadeAnywhere(row) && !(row.operationId in MADE_HERE)) return undefined;
  const { clusterID } = body as { readonly clusterID?: string };
  if (clusterID === undefined || !querystring.includes('clusterID')) return clusterID;
  const others = new URLSearchParams(querystring).getAll('clusterID');
  if (others.some((other) => other !== clusterID))
    throw invalidArgument('clusterID', 'is another one in the query');
  return clusterID;
};
