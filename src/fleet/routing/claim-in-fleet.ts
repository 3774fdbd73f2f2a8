import type { ClaimPlace } from '../../actors/env/claim-places.ts';
import type { Operations } from '../../services/operations.ts';
import type { EffectUnderGrant } from '../../services/approvals/grant.ts';
import { idempotencyInFlight } from '../../model/refusals.ts';
import { answerMarked, type CarryOutDeps } from '../../http/corridor/marked-answer.ts';
import { FREE, type Pass } from '../../http/corridor/pass.ts';
import { carryOut } from '../../http/corridor/stages/perform.ts';
import type { Answer, AnyRequest, Route } from '../../http/corridor/route.ts';
import { claimOverClusters, placeBefore, type ClaimOverClusters } from './claim-over-clusters.ts';
import { shownOwn, shownOwnText, type FleetDeps } from './fleet-router.ts';

export interface ClaimInFleetDeps extends CarryOutDeps {
  readonly operations: Pick<Operations, 'claimedBefore' | 'claimPlaces' | 'idempotentRequest'>;
}

interface Asked extends Pick<
  ClaimOverClusters,
  'caller' | 'context' | 'request' | 'bytes' | 'key' | 'pass'
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
): Promise<((use: EffectUnderGrant) => Promise<Answer>) | undefined> => {
  if (row.operationId !== 'claimSandbox') return undefined;
  const { surface } = fleet;
  const { poolName } = surface
    ? { poolName: surface.poolOf(asked.request.body) }
    : ((asked.request.body ?? {}) as { readonly poolName?: unknown });
  const { operations } = deps;
  if (typeof poolName !== 'string') return undefined;
  const [now, ...others] = operations
    .claimPlaces(asked.caller, poolName)
    .filter(({ clusterId }) => surface?.serves(clusterId) ?? true);
  const best = now ?? (await placeAsBefore({ fleet, operations }, asked, poolName));
  if (!best) return undefined;
  const claim = { ...asked, row, asksFor: poolName };
  return (use) =>
    claimOverClusters(
      { fleet, operations },
      {
        ...claim,
        use,
        places: [best, ...others],
        own: (name, waitMs) => claimHere(deps, fleet, { ...claim, use, poolName: name, waitMs }),
      },
    );
};

/**
 * Tells where a claim goes whose name alone leads to no other cluster: where it went before, by its
 * key; under a grant to this cluster, unless the use says otherwise.
 */
const placeAsBefore = async (
  deps: Parameters<typeof placeBefore>[0],
  { key, ...asked }: Omit<Asked, 'fleet'>,
  poolName: string,
): Promise<ClaimPlace | undefined> => {
  if (key === undefined) return undefined;
  return key === asked.pass.key
    ? { clusterId: deps.fleet.fleet.clusterId, poolName, took: () => undefined }
    : await placeBefore(deps, asked, key);
};

/**
 * Returns what refuses a claim under a key once it is open on this cluster, where another replica,
 * which sees members of the env elsewhere, sent it there meanwhile; its repetition goes there too.
 */
export const refuseElsewhere = (
  row: Route,
  { operations }: ClaimInFleetDeps,
  { fleet, key, ...asked }: Asked,
): (() => Promise<void>) | undefined =>
  row.operationId !== 'claimSandbox' || key === undefined
    ? undefined
    : async () => {
        if (await placeBefore({ fleet, operations }, asked, key)) throw idempotencyInFlight();
      };

/** Claims from a pool of this cluster by another name than was asked for. */
const claimHere = async (
  deps: CarryOutDeps,
  fleet: FleetDeps,
  { row, poolName, asksFor, request: asked, key, use, waitMs, ...claim }: ClaimHere,
): Promise<Answer> => {
  const isNamed = poolName === asksFor;
  const body = isNamed ? asked.body : claimOf(fleet, asked.body as object, poolName);
  const request = { ...asked, body, waitMs };
  if (key === undefined) {
    const answer = await carryOut(row, deps, request);
    return { ...answer, body: shownOwn(fleet, { row, request }, answer.body) };
  }
  const pass: Pass = { ...FREE, key: claim.pass.key, use: (work) => work(use) };
  const perform = (changed: AnyRequest) => carryOut(row, deps, changed);
  const marked = await answerMarked(row, deps, { ...claim, request, key, pass, perform });
  return { ...marked, body: JSON.parse(shownOwnText(fleet, { row, request }, marked)) as object };
};

const claimOf = ({ surface, fleet }: FleetDeps, body: object, poolName: string): object =>
  surface ? surface.claimOf(body, `${fleet.clusterId}::${poolName}`) : { ...body, poolName };

interface ClaimHere extends Pick<
  ClaimOverClusters,
  'row' | 'caller' | 'context' | 'request' | 'bytes' | 'key' | 'pass' | 'use'
> {
  readonly poolName: string;
  /** The pool or env that the request names. */
  readonly asksFor: string;
  readonly waitMs: number;
}
