import type { WayToCluster } from '../replication/fleet-operations.ts';
import type { Exchange } from '../../http/corridor/stages/exchange.ts';
import { namedCluster } from '../../http/corridor/stages/named-cluster.ts';
import type { Answer, AnyRequest, Route } from '../../http/corridor/route.ts';
import { isMerged, type MergedRow } from './fleet-names.ts';
import type { FleetDeps } from './fleet-router.ts';
import type { MergedTerms } from './merged/gathered.ts';
import { mergedActors } from './merged/merged-actors.ts';
import { mergedAudit } from './merged/merged-audit.ts';
import { mergedEvents } from './merged/merged-events.ts';
import { mergedList } from './merged/merged-list.ts';
import { mergedQuotas } from './merged/merged-quotas.ts';
import { mergedStatistics } from './merged/merged-statistics.ts';

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
 * where that is this cluster, or the row is answered from several. Refuses as `namedCluster` does.
 */
export const wayByCluster = (
  { fleet, passing }: FleetDeps,
  clusterId: string,
  { row, request, context }: Pick<Exchange, 'row' | 'request' | 'context'>,
): WayToCluster | undefined => {
  const asked = namedCluster({ row, request, context, clusterId });
  return asked === undefined || isMerged(row, request) ? undefined : passing.wayTo(fleet, asked);
};
