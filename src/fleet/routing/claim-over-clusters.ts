import { clusterUnavailable, LinkBusy } from '../../model/fleet/cluster-refusals.ts';
import { Refusal, unavailable } from '../../model/refusals.ts';
import type { Caller } from '../../model/tenant.ts';
import type { ClaimPlace } from '../../actors/env/claim-places.ts';
import type { Operations } from '../../services/operations.ts';
import type { IdempotentRequest } from '../../actors/request/idempotent-request.ts';
import { readName } from '../../http/corridor/local-names.ts';
import { AnsweredElsewhere } from '../../http/corridor/pass.ts';
import type { Answer, AnyRequest, Route } from '../../http/corridor/route.ts';
import type { WayToCluster } from '../replication/fleet-operations.ts';
import { errorCodeIn, hadNoEffect, poolNameIn } from './fleet-names.ts';
import { answerAway, type Away, type FleetDeps } from './fleet-router.ts';

export interface ClaimOverClusters extends Omit<Away, 'way' | 'waitMs'> {
  /** Best first. */
  readonly places: ClaimPlaces;
}

export type ClaimPlaces = readonly [ClaimPlace, ...ClaimPlace[]];

export interface ClaimOverClustersDeps {
  readonly fleet: FleetDeps;
  readonly operations: Pick<Operations, 'claimedBefore' | 'claimPlaces'>;
  readonly claimHere: (request: AnyRequest) => Promise<Answer> | Answer;
}

/** Had no effect, and another cluster may answer differently. */
const ELSEWHERE: ReadonlySet<string> = new Set([
  'POOL_EXHAUSTED',
  'POOL_NOT_FOUND',
  'POOL_NOT_OWNED',
  'QUOTA_EXCEEDED',
  'TOO_MANY_WAITING',
]);

/**
 * A gated claim always gets a place, even on this cluster: its approval covers one claim, even if
 * the env's members change.
 */
export const claimPlacesOf = (
  { fleet: deps, operations }: Pick<ClaimOverClustersDeps, 'fleet' | 'operations'>,
  { operationId }: Pick<Route, 'operationId'>,
  claim: { readonly caller: Caller; readonly body: unknown; readonly isHeld: boolean },
): ClaimPlaces | undefined => {
  if (operationId !== 'claimSandbox') return undefined;
  const poolName = poolOf(deps, claim.body);
  if (poolName === undefined) return undefined;
  const [best, ...others] = operations
    .claimPlaces(claim.caller, poolName)
    .filter(({ clusterId }) => deps.surface?.serves(clusterId) ?? true);
  if (best) return [best, ...others];
  return claim.isHeld ? [placeNamed(poolName, deps.fleet.clusterId)] : undefined;
};

const poolOf = ({ surface }: Pick<FleetDeps, 'surface'>, body: unknown): string | undefined =>
  surface ? surface.poolOf(body) : poolNameIn(body);

/**
 * Claims at the best place, then, if it refuses, at one other for the rest of the wait. A claim
 * that may have taken effect is not tried elsewhere. With a key, the place is stored before the
 * claim is sent, and a repetition goes only there.
 */
export const claimOverClusters = async (
  deps: ClaimOverClustersDeps,
  claim: ClaimOverClusters,
): Promise<Answer> => {
  const { clock } = deps.fleet.passing;
  const until = clock.now() + waitMsOf(deps, claim.request);
  const opening = claim.request.keyed?.opening;
  const before = opening && (await placeBefore(deps, claim, opening));
  const [first, second] = before ? [before] : claim.places;
  const attemptAt = (place: ClaimPlace): Promise<Attempted> =>
    attempt(deps, { ...claim, waitMs: Math.max(0, until - clock.now()) }, place);
  let attempted = await attemptAt(first);
  if (attempted.mayGoElsewhere && second) attempted = await attemptAt(second);
  if (!attempted.hadNoEffect) return attempted.give();
  if (!before) opening?.wentNowhere();
  throw new AnsweredElsewhere(attempted.give, true);
};

const waitMsOf = (
  { fleet: { surface } }: ClaimOverClustersDeps,
  { body }: Pick<AnyRequest, 'body'>,
): number => {
  if (surface) return surface.waitMs;
  const { waitTimeoutSeconds = 0 } = (body ?? {}) as { readonly waitTimeoutSeconds?: number };
  return waitTimeoutSeconds * 1_000;
};

const placeBefore = async (
  { fleet: { fleet }, operations }: ClaimOverClustersDeps,
  { caller, places }: ClaimOverClusters,
  opening: IdempotentRequest,
): Promise<ClaimPlace | undefined> => {
  const { clusterId } = fleet;
  if (opening.place !== undefined) return placeNamed(opening.place, clusterId, places);
  // a request from before the env had members elsewhere
  if (await operations.claimedBefore(caller, opening)) return { ...places[0], clusterId };
  if (opening.mayBeDone)
    throw unavailable(
      'the cluster that got this request first is unknown; use a new Idempotency-Key',
    );
  return undefined;
};

/** Parses `west::default`, or `default` for this cluster. */
export const placeNamed = (
  name: string,
  own: string,
  places: readonly ClaimPlace[] = [],
): ClaimPlace => {
  const { cluster: clusterId = own, local: poolName } = readName('pool', name) ?? { local: name };
  return (
    places.find((place) => place.clusterId === clusterId && place.poolName === poolName) ?? {
      clusterId,
      poolName,
      took: () => undefined,
    }
  );
};

interface Attempted {
  readonly give: () => Answer;
  readonly hadNoEffect: boolean;
  readonly mayGoElsewhere: boolean;
}

interface Attempt extends ClaimOverClusters {
  readonly waitMs: number;
}

const attempt = async (
  deps: ClaimOverClustersDeps,
  claim: Attempt,
  place: ClaimPlace,
): Promise<Attempted> => {
  let isSent = false;
  try {
    const isOwn = place.clusterId === deps.fleet.fleet.clusterId;
    const way = isOwn ? undefined : wayTo(deps.fleet, place.clusterId);
    isSent = true;
    const answer = await (way
      ? claimAway(deps, claim, { place, way })
      : claimHere(deps, claim, place));
    const { status } = answer;
    const code = status < 400 ? undefined : errorCodeIn(answer.body);
    if (status < 300) place.took('one');
    if (code === 'POOL_EXHAUSTED') place.took('all');
    return {
      give: () => answer,
      hadNoEffect: hadNoEffect(answer),
      mayGoElsewhere: code !== undefined && ELSEWHERE.has(code),
    };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (isSent && !(error instanceof LinkBusy) && !ELSEWHERE.has(error.code)) throw error;
    if (error.code === 'POOL_EXHAUSTED') place.took('all');
    const give = (): never => {
      throw error;
    };
    return { give, hadNoEffect: true, mayGoElsewhere: true };
  }
};

/** The client did not name a cluster, so the error must not be CLUSTER_NOT_FOUND. */
const wayTo = ({ fleet, passing }: FleetDeps, clusterId: string): WayToCluster => {
  try {
    return passing.wayTo(fleet, clusterId);
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'CLUSTER_NOT_FOUND') throw error;
    const why = 'was removed from the fleet; use a new Idempotency-Key';
    throw clusterUnavailable(clusterId, why);
  }
};

const claimHere = async (
  { fleet, claimHere: claim }: ClaimOverClustersDeps,
  { request, waitMs }: Attempt,
  { poolName }: ClaimPlace,
): Promise<Answer> => {
  await request.keyed?.opening.goTo(poolName);
  const {
    surface,
    fleet: { clusterId },
  } = fleet;
  const asked = request.body as object;
  const isNamed = poolOf(fleet, asked) === poolName;
  const named = surface ? `${clusterId}::${poolName}` : poolName;
  return await claim({ ...request, waitMs, body: isNamed ? asked : claimOf(fleet, asked, named) });
};

const claimAway = async (
  { fleet }: ClaimOverClustersDeps,
  { places: _places, bytes, ...claim }: Attempt,
  { place, way }: { readonly place: ClaimPlace; readonly way: WayToCluster },
): Promise<Answer> => {
  const name = `${place.clusterId}::${place.poolName}`;
  await claim.request.keyed?.opening.goTo(name);
  const body = JSON.parse(bytes.toString()) as object;
  const asked = claimOf(fleet, body, fleet.surface ? name : place.poolName);
  return await answerAway(fleet, { ...claim, way, bytes: Buffer.from(JSON.stringify(asked)) });
};

const claimOf = ({ surface }: FleetDeps, body: object, poolName: string): object =>
  surface ? surface.claimOf(body, poolName) : { ...body, poolName };
