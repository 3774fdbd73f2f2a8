import { RequestPlaced } from '../../model/fleet/cluster-refusals.ts';
import type { CorridorDeps, ManagerStages } from '../../http/corridor/corridor.ts';
import { AnsweredElsewhere, FREE } from '../../http/corridor/pass.ts';
import { carryOut } from '../../http/corridor/stages/perform.ts';
import type { Answer, AnyRequest, Route } from '../../http/corridor/route.ts';
import {
  type Elsewhere,
  type Exchange,
  mayBeKeyed,
  type Stage,
} from '../../http/corridor/stages/exchange.ts';
import { namedCluster } from '../../http/corridor/stages/named-cluster.ts';
import type { Caller } from '../../model/tenant.ts';
import type { Operations } from '../../services/operations.ts';
import type { WayToCluster } from '../replication/fleet-operations.ts';
import {
  claimOverClusters,
  type ClaimPlaces,
  claimPlacesOf,
  placeNamed,
} from './claim-over-clusters.ts';
import {
  answerAway,
  type FleetDeps,
  requireThere,
  shownOwn,
  shownOwnText,
  wayByPath,
  wayByPool,
} from './fleet-router.ts';
import { givePassed, PassedBody } from './passed-answer.ts';
import { isOfCluster } from './passed-headers.ts';
import { hadNoEffect, isMerged, type MergedRow } from './fleet-names.ts';
import type { MergedTerms } from './merged/gathered.ts';
import { mergedActors } from './merged/merged-actors.ts';
import { mergedAudit } from './merged/merged-audit.ts';
import { mergedEvents } from './merged/merged-events.ts';
import { mergedList } from './merged/merged-list.ts';
import { mergedQuotas, mergedStatistics } from './merged/merged-sums.ts';

type ClaimOperations = Pick<Operations, 'claimedBefore' | 'claimPlaces'>;

/**
 * Forwards a manager's requests: to the cluster that a path, a body or a query names, to an env's
 * places, or to all clusters.
 */
export const managerStages =
  (fleet: FleetDeps, operations: ClaimOperations, list?: Merge) =>
  (corridor: CorridorDeps): ManagerStages => {
    const deps: Deps = { fleet, operations, list, corridor };
    const ways = new WeakMap<Exchange, WayToCluster>();

    const locate: Stage = async (exchange, next) => {
      const { caller, context, row } = exchange;
      const way = caller && wayByPath(fleet, row, context.params);
      if (caller && way) {
        ways.set(exchange, way);
        exchange.isElsewhere = true;
        exchange.requireThere = () => requireThere(fleet, { way, caller, context });
      }
      await next();
    };

    const forward: Stage = async (exchange, next) => {
      const byCluster = wayByCluster(deps, exchange);
      const { caller, request, query } = exchange;
      if (!caller) return await next();
      const routed = { exchange, caller };
      const way = ways.get(exchange) ?? wayByPool(fleet, request.body, query) ?? byCluster;
      exchange.elsewhere = way ? passedOn(deps, routed, way) : overClusters(deps, routed);
      try {
        await answered(fleet, exchange, next);
      } catch (error) {
        if (!(error instanceof RequestPlaced)) throw error;
        const place = placeNamed(error.place, fleet.fleet.clusterId);
        exchange.elsewhere = claimed(deps, routed, [place]);
        await answered(fleet, exchange, next);
      }
    };

    return { locate, forward };
  };

interface Deps {
  readonly fleet: FleetDeps;
  readonly operations: ClaimOperations;
  readonly list: Merge | undefined;
  readonly corridor: CorridorDeps;
}

interface Routed {
  readonly exchange: Exchange;
  readonly caller: Caller;
}

const passedOn = ({ fleet }: Deps, routed: Routed, way: WayToCluster): Elsewhere =>
  keepable(fleet, {
    // a gated request is carried out once, whichever replica receives the repetition
    isKept: routed.exchange.pass !== FREE,
    answer: (request) => answerAway(fleet, { ...askedOf(routed), request, way }),
  });

const overClusters = (deps: Deps, routed: Routed): Elsewhere | undefined => {
  const { row, request, pass, key } = routed.exchange;
  const { caller } = routed;
  const isHeld = pass !== FREE;
  const places = claimPlacesOf(deps, row, { caller, body: request.body, isHeld });
  if (places) return claimed(deps, routed, places);
  const merge = key === undefined ? mergeOf(row, request, deps.list) : undefined;
  return merge && merged(deps, routed, merge);
};

const claimed = (deps: Deps, routed: Routed, places: ClaimPlaces): Elsewhere => {
  const claimHere = (request: AnyRequest) => carryOut(routed.exchange.row, deps.corridor, request);
  return keepable(deps.fleet, {
    isKept: true,
    answer: (request) =>
      claimOverClusters({ ...deps, claimHere }, { ...askedOf(routed), request, places }),
  });
};

const merged = (
  { fleet, corridor }: Deps,
  { exchange: { row, context }, caller }: Routed,
  merge: Merge,
): Elsewhere => ({
  isKept: false,
  answer: (request) =>
    merge(fleet, {
      ...{ caller, context, request },
      own: (changed) => carryOut(row, corridor, { ...request, ...changed }),
    }),
});

const askedOf = ({ exchange: { row, context, bytes, key }, caller }: Routed) => ({
  ...{ row, context, caller, bytes },
  key: mayBeKeyed({ row }) ? key : undefined,
});

/** A refusal, or an answer that cannot be stored, skips the stages that store. */
const keepable = ({ surface }: FleetDeps, { isKept, answer }: Elsewhere): Elsewhere => ({
  isKept,
  answer: async (request) => {
    const given = await answer(request);
    const isStreamed = given.body instanceof PassedBody;
    if (given.status < 400 && !isStreamed && !(surface && isOfCluster(given))) return given;
    throw new AnsweredElsewhere(() => given, hadNoEffect(given));
  },
});

const answered = async (
  fleet: FleetDeps,
  exchange: Exchange,
  next: () => Promise<void>,
): Promise<void> => {
  try {
    await next();
  } catch (error) {
    if (!(error instanceof AnsweredElsewhere)) throw error;
    const answer = error.give();
    if (answer.status < 400) await exchange.pass.settle();
    exchange.context.state.answered = answer.body;
    if (answer.body instanceof PassedBody)
      return givePassed(exchange.context, { ...answer, body: answer.body }, fleet.passing.clock);
    exchange.answer = answer;
  }
  const { kept, answer } = exchange;
  if (kept && !isOfCluster(kept))
    exchange.kept = { ...kept, text: shownOwnText(fleet, exchange, kept) };
  else if (answer && !isOfCluster(answer))
    exchange.answer = { ...answer, body: shownOwn(fleet, exchange, answer.body) };
};

type Merge = (deps: FleetDeps, terms: MergedTerms) => Promise<Answer>;

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

const mergeOf = (
  row: Pick<Route, 'operationId'>,
  request: AnyRequest,
  list?: Merge,
): Merge | undefined =>
  isMerged(row, request) ? (list ?? MERGES[row.operationId as MergedRow]) : undefined;

/** Undefined for this cluster, or if the row merges answers. Refuses as `namedCluster` does. */
const wayByCluster = (
  { fleet: { fleet, passing }, corridor: { terms } }: Deps,
  { row, request, context }: Exchange,
): WayToCluster | undefined => {
  const asked = namedCluster({ row, request, context, clusterId: terms.clusterId });
  return asked === undefined || isMerged(row, request) ? undefined : passing.wayTo(fleet, asked);
};
