import { clusterNotFound } from '../../model/refusals.ts';
import type { WayToCluster } from '../../operations/fleet/fleet-operations.ts';
import type { Answer, AnyRequest, Route } from '../router/route.ts';
import { isMerged, type MergedRow } from './fleet-names.ts';
import type { FleetDeps } from './fleet-router.ts';
import { namedByQuery, type MergedTerms } from './gathered.ts';
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
 * Finds the way by the `clusterID` of a query; undefined where that is this cluster, or the row is
 * answered from several. Refuses with CLUSTER_NOT_FOUND, also where this is no manager.
 */
export const wayByCluster = (
  { fleet, clusterId }: { readonly fleet?: FleetDeps | undefined; readonly clusterId: string },
  row: Pick<Route, 'operationId'>,
  request: Pick<AnyRequest, 'query'>,
): WayToCluster | undefined => {
  const asked = namedByQuery(request.query);
  if (asked === undefined || asked === clusterId) return undefined;
  if (!fleet) throw clusterNotFound();
  return isMerged(row, request) ? undefined : fleet.fleet.wayTo(asked);
};
