import type { CorridorDeps, ManagerStages } from '../../http/corridor/corridor.ts';
import { FREE, passAway, useAway, type WorkAway } from '../../http/corridor/pass.ts';
import { type Marked, markedPathOf } from '../../http/corridor/marked-answer.ts';
import type { Answer, AnyRequest, Route } from '../../http/corridor/route.ts';
import { type Exchange, mayBeKeyed, type Stage } from '../../http/corridor/stages/exchange.ts';
import { carryOut } from '../../http/corridor/stages/perform.ts';
import type { Operations } from '../../services/operations.ts';
import type { WayToCluster } from '../replication/fleet-operations.ts';
import { claimInFleet, refuseElsewhere } from './claim-in-fleet.ts';
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
import {
  answerOnce,
  fingerprintOf,
  type IdempotencyDeps,
  type WrittenAnswer,
  written,
} from '../../http/corridor/idempotency.ts';
import { namedCluster } from '../../http/corridor/stages/named-cluster.ts';
import { isMerged, type MergedRow } from './fleet-names.ts';
import type { MergedTerms } from './merged/gathered.ts';
import { mergedActors } from './merged/merged-actors.ts';
import { mergedAudit } from './merged/merged-audit.ts';
import { mergedEvents } from './merged/merged-events.ts';
import { mergedList } from './merged/merged-list.ts';
import { mergedQuotas } from './merged/merged-quotas.ts';
import { mergedStatistics } from './merged/merged-statistics.ts';

type ClaimOperations = Pick<Operations, 'claimedBefore' | 'claimPlaces' | 'idempotentRequest'>;

/**
 * Makes the stages by which a manager passes requests on: to the cluster that a path, a body or a
 * query names, to the places of an env that is over clusters, or, for some lists, to all clusters.
 */
export const managerStages =
  (fleet: FleetDeps, operations: ClaimOperations, list?: Merge) =>
  (deps: CorridorDeps): ManagerStages => {
    /** Ways that `locate` found by the path. */
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
      const { row, context, caller, request } = exchange;
      const byCluster = wayByCluster(fleet, deps.terms.clusterId, exchange);
      if (!caller) return await next();
      const way = ways.get(exchange) ?? wayByPool(fleet, request.body, exchange.query) ?? byCluster;
      const asked = { ...askedOf(exchange), caller };
      if (way)
        return giveAway(
          exchange,
          await useElsewhere(deps, exchange, (use) => answerAway(fleet, { ...asked, way, use })),
        );
      const claimDeps = { ...deps, operations };
      const claim = { ...asked, fleet, pass: exchange.pass };
      const work = await claimInFleet(row, claimDeps, claim);
      if (work) return giveAway(exchange, await useElsewhere(deps, exchange, work));
      const merge = exchange.key === undefined ? mergeOf(row, request, list) : undefined;
      if (merge) {
        const own = (changed: Partial<AnyRequest>) =>
          carryOut(row, deps, { ...request, ...changed });
        exchange.answer = await exchange.pass.use(() =>
          merge(fleet, { caller, context, request, own }),
        );
        deps.admission.working(caller);
        context.state.answered = exchange.answer.body;
        return;
      }
      exchange.opened = refuseElsewhere(row, claimDeps, claim);
      await next();
      showOwn(fleet, exchange);
    };

    return { locate, forward };
  };

const askedOf = ({ row, context, request, bytes, key }: Exchange) => ({
  ...{ row, context, request, bytes },
  key: mayBeKeyed({ row }) ? key : undefined,
});

/** A held request under a key is carried out once; its answer is kept here. */
const useElsewhere = (deps: CorridorDeps, exchange: Exchange, work: WorkAway): Promise<Answer> => {
  const { row, pass, caller } = exchange;
  const { context, request, bytes, key } = askedOf(exchange);
  return caller && key !== undefined && pass !== FREE && !deps.terms.surface
    ? answerHeldAway(deps, { row, context, request, caller, key, bytes, pass }, work)
    : useAway(pass, work);
};

/** A body that is passed on as it comes is answered here; `reply` writes any other answer. */
const giveAway = (exchange: Exchange, answer: Answer): void => {
  if (answer.body instanceof PassedBody)
    return givePassed(exchange.context, { ...answer, body: answer.body });
  exchange.context.state.answered = answer.body;
  exchange.answer = answer;
};

/** An answer of the manager's own cluster gets the names that the fleet knows it by. */
const showOwn = (fleet: FleetDeps, exchange: Exchange): void => {
  const { kept, answer } = exchange;
  if (kept) exchange.kept = { ...kept, text: shownOwnText(fleet, exchange, kept) };
  else if (answer) exchange.answer = { ...answer, body: shownOwn(fleet, exchange, answer.body) };
};

interface HeldAway extends Omit<Marked, 'perform'> {
  readonly row: Pick<Route, 'method'>;
}

/**
 * Has another cluster carry out what a rule holds, once under its key: repetitions get the first
 * answer, which is kept here, and need no approval.
 */
const answerHeldAway = async (
  deps: IdempotencyDeps,
  { row, context, request, caller, key, bytes, pass }: HeldAway,
  work: WorkAway,
): Promise<Answer> => {
  const path = markedPathOf({ context, request, key, pass });
  const mark = fingerprintOf(caller, {
    method: row.method,
    path: `${path} elsewhere`, // it may be this cluster's to carry out, under the key itself
    key,
    body: bytes,
  });
  let given: Answer | undefined;
  const marked = await answerOnce(deps, {
    mark,
    caller,
    credential: String(context.req.headers['service-api-key']),
    opensItself: false,
    earlier: undefined,
    pendingOutcome: () => undefined,
    carryOut: async () => {
      given = await passAway(pass, work);
      return given.body instanceof PassedBody ? NOT_KEPT : { ...written(given), secret: true };
    },
    settle: async () => {
      if (!given || given.status < 400) await pass.settle();
    },
  });
  const { status, headers, text } = marked;
  return given ?? { status, headers, body: JSON.parse(text) as object };
};

const NOT_KEPT: WrittenAnswer = { status: 500, headers: {}, text: '', secret: false };

/** Answers for all clusters. */
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

/** Finds how a manager answers from all clusters; undefined of a request that is for one. */
const mergeOf = (
  row: Pick<Route, 'operationId'>,
  request: AnyRequest,
  list?: Merge,
): Merge | undefined =>
  isMerged(row, request) ? (list ?? MERGES[row.operationId as MergedRow]) : undefined;

/**
 * Finds the way by the `clusterID` of a query, or of the body of what is made there; undefined
 * where that is this cluster, or the row is answered from several. Refuses as `namedCluster` does.
 */
const wayByCluster = (
  { fleet, passing }: FleetDeps,
  clusterId: string,
  { row, request, context }: Pick<Exchange, 'row' | 'request' | 'context'>,
): WayToCluster | undefined => {
  const asked = namedCluster({ row, request, context, clusterId });
  return asked === undefined || isMerged(row, request) ? undefined : passing.wayTo(fleet, asked);
};
