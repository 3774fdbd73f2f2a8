import { clusterNotFound, invalidArgument } from '../../../model/refusals.ts';
import type { Context } from '../../reply/context.ts';
import { readName } from '../local-names.ts';
import type { AnyRequest, Route } from '../route.ts';
import type { Stage } from './exchange.ts';

interface Named {
  readonly row: Pick<Route, 'operationId'>;
  readonly request: Pick<AnyRequest, 'query' | 'body'>;
  readonly context: Pick<Context, 'querystring'>;
  readonly clusterId: string;
}

/** Refuses requests for other clusters with CLUSTER_NOT_FOUND. */
export const onlyHere =
  ({ terms: { clusterId } }: { readonly terms: { readonly clusterId: string } }): Stage =>
  ({ row, request, context }, next) => {
    if (namedCluster({ row, request, context, clusterId }) !== undefined) throw clusterNotFound();
    return next();
  };

/**
 * The other cluster of `clusterID`. Refuses with INVALID_ARGUMENT if body, query and pool name
 * disagree, or if the row creates only here.
 */
export const namedCluster = ({ row, request, context, clusterId }: Named): string | undefined => {
  const asked = namedByQuery(request.query) ?? namedByBody(row, request.body, context.querystring);
  const whyHere = MADE_HERE[row.operationId];
  if (whyHere !== undefined && (asked ?? clusterId) !== clusterId)
    throw invalidArgument('clusterID', whyHere);
  if (asked !== undefined && (poolsCluster(request.query) ?? asked) !== asked)
    throw invalidArgument('clusterID', 'must be the cluster of poolName');
  return asked === clusterId ? undefined : asked;
};

export const namedByQuery = (query: unknown): string | undefined =>
  (query as { readonly clusterID?: string } | undefined)?.clusterID;

const MADE_ANYWHERE: ReadonlySet<string> = new Set(['createPool']);

const isMadeAnywhere = ({ operationId }: { readonly operationId: string }): boolean =>
  MADE_ANYWHERE.has(operationId);

const poolsCluster = (query: unknown): string | undefined => {
  const { poolName } = (query ?? {}) as { readonly poolName?: unknown };
  return typeof poolName === 'string' ? readName('pool', poolName)?.cluster : undefined;
};

const KEY_IS_MADE_HERE =
  'must be this cluster, which stores the key; promote the key to use it on other clusters';
/** They create only on this cluster; with the message for another one. */
const MADE_HERE: Readonly<Record<string, string>> = {
  createEnv: 'must be this cluster, which stores the env; each of its members has a clusterID',
  createApiKey: KEY_IS_MADE_HERE,
  createApiKeyForTenant: KEY_IS_MADE_HERE,
};

/** They ignore `clusterID` in the query, but a contradiction is a client's mistake. */
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
    throw invalidArgument('clusterID', 'must be the same as in the query');
  return clusterID;
};
