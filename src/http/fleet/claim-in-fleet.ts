import type { Operations } from '../../operations/operations.ts';
import { answerMarked, carryOut, type CarryOutDeps } from '../router/marked-answer.ts';
import { FREE } from '../router/pass.ts';
import type { Answer, Route } from '../router/route.ts';
import { claimOverClusters, placeBefore, type ClaimOverClusters } from './claim-over-clusters.ts';
import { shownOwn, shownOwnText, type FleetDeps } from './fleet-router.ts';

export interface ClaimInFleetDeps extends CarryOutDeps {
  readonly operations: Pick<Operations, 'claimedBefore' | 'claimPlaces' | 'idempotentRequest'>;
}

interface Asked extends Pick<
  ClaimOverClusters,
  'caller' | 'context' | 'request' | 'bytes' | 'key'
> {
  readonly fleet: FleetDeps;
}

/**
 * Returns what answers a claim by the name of an env that has members on other clusters, or under a
 * key had when it came first; undefined of any other request.
 */
export const claimInFleet = async (
  row: Route,
  deps: ClaimInFleetDeps,
  { fleet, ...asked }: Asked,
): Promise<(() => Promise<Answer>) | undefined> => {
  if (row.operationId !== 'claimSandbox') return undefined;
  const { surface } = fleet;
  const { poolName } = surface
    ? { poolName: surface.poolOf(asked.request.body) }
    : ((asked.request.body ?? {}) as { readonly poolName?: unknown });
  const { operations } = deps;
  if (typeof poolName !== 'string') return undefined;
  const { key } = asked;
  const [now, ...others] = operations
    .claimPlaces(asked.caller, poolName)
    .filter(({ clusterId }) => surface?.serves(clusterId) ?? true);
  const best =
    now ?? (key === undefined ? undefined : await placeBefore({ fleet, operations }, asked, key));
  if (!best) return undefined;
  const claim = { ...asked, row };
  return () =>
    claimOverClusters(
      { fleet, operations },
      {
        ...claim,
        places: [best, ...others],
        own: (name) => claimHere(deps, fleet, { ...claim, poolName: name }),
      },
    );
};

/** Claims from a pool of this cluster by another name than was asked for. */
const claimHere = async (
  deps: CarryOutDeps,
  fleet: FleetDeps,
  { row, poolName, request: asked, key, ...claim }: ClaimHere,
): Promise<Answer> => {
  const request = { ...asked, body: claimOf(fleet, asked.body as object, poolName) };
  if (key === undefined) {
    const answer = await carryOut(row, deps, request);
    return { ...answer, body: shownOwn(fleet, row, request, answer.body) };
  }
  const marked = await answerMarked(row, deps, { ...claim, request, key, pass: FREE });
  return { ...marked, body: JSON.parse(shownOwnText(fleet, row, request, marked)) as object };
};

const claimOf = ({ surface, fleet }: FleetDeps, body: object, poolName: string): object =>
  surface ? surface.claimOf(body, `${fleet.clusterId}::${poolName}`) : { ...body, poolName };

interface ClaimHere extends Pick<
  ClaimOverClusters,
  'row' | 'caller' | 'context' | 'request' | 'bytes' | 'key'
> {
  readonly poolName: string;
}
