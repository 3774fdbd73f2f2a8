import { clusterNotFound, invalidArgument } from '../../../model/refusals.ts';
import type { Context } from '../../reply/context.ts';
import { readName } from '../local-names.ts';
import type { AnyRequest, Route } from '../route.ts';
import type { Stage } from './exchange.ts';

interface Named {
  readonly row: Pick<Route, 'operationId'>;
  readonly request: Pick<AnyRequest, 'query' | 'body'>;
  readonly context: Pick<Context, 'querystring'>;
  /** Id of this cluster. */
  readonly clusterId: string;
}

/**
 * Refuses a request for another cluster with CLUSTER_NOT_FOUND, on a daemon without other clusters.
 */
export const onlyHere =
  ({ terms: { clusterId } }: { readonly terms: { readonly clusterId: string } }): Stage =>
  ({ row, request, context }, next) => {
    if (namedCluster({ row, request, context, clusterId }) !== undefined) throw clusterNotFound();
    return next();
  };

/**
 * Returns the other cluster that `clusterID` selects in the query, or in the body of a create.
 * Refuses with INVALID_ARGUMENT if body and query differ, or query and pool name. Also refuses
 * another cluster if the row creates only on this cluster.
 */
export const namedCluster = ({ row, request, context, clusterId }: Named): string | undefined => {
  const asked = namedByQuery(request.query) ?? namedByBody(row, request.body, context.querystring);
  const whyHere = MADE_HERE[row.operationId];
  if (whyHere !== undefined && (asked ?? clusterId) !== clusterId)
    throw invalidArgument('clusterID', whyHere);
  if (asked !== undefined && (poolsCluster(request.query) ?? asked) !== asked)
    throw invalidArgument('clusterID', 'is another one than that of poolName');
  return asked === clusterId ? undefined : asked;
};

export const namedByQuery = (query: unknown): string | undefined =>
  (query as { readonly clusterID?: string } | undefined)?.clusterID;

/** Rows that create a resource on the cluster in the body's `clusterID`. */
const MADE_ANYWHERE: ReadonlySet<string> = new Set(['createPool']);

const isMadeAnywhere = ({ operationId }: { readonly operationId: string }): boolean =>
  MADE_ANYWHERE.has(operationId);

/** Cluster prefix of the query's `poolName`. */
const poolsCluster = (query: unknown): string | undefined => {
  const { poolName } = (query ?? {}) as { readonly poolName?: unknown };
  return typeof poolName === 'string' ? readName('pool', poolName)?.cluster : undefined;
};

const KEY_IS_MADE_HERE = 'must be this cluster, which keeps the key; promote it for the others';
/** Rows that create a resource only on this cluster, with the message for another cluster. */
const MADE_HERE: Readonly<Record<string, string>> = {
  createEnv: 'must be this cluster, which keeps the env; its members have a clusterID each',
  createApiKey: KEY_IS_MADE_HERE,
  createApiKeyForTenant: KEY_IS_MADE_HERE,
};

/**
 * These rows ignore `clusterID` in the query. A value that contradicts the body is a client's
 * mistake, so refuse it.
 */
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
