import Router from '@koa/router';
import { invalidApiKey } from '../../model/refusals.ts';
import { tenantKey } from '../../model/tenant.ts';
import type { Operations } from '../../services/operations.ts';
import type { ApiSurface } from './api-surface.ts';
import { roomOf, tagView, give, givePieces, givePlainly } from './answer-writing.ts';
import { askedBase, BASES } from '../reply/bases.ts';
import type { Clients } from '../limits/clients.ts';
import type { Context, RequestState } from '../reply/context.ts';
import { entityTag, revisionsOf } from './entity-tag.ts';
import { EventStream, type EventStreams, type FollowKey } from '../reply/event-streams.ts';
import { mayBeHeld, passOf, type GatingDeps } from './approval-gating.ts';
import { answerHeldAway, answerMarked, carryOut, type CarryOutDeps } from './marked-answer.ts';
import { FREE, useAway, type WorkAway } from './pass.ts';
import { localName, nameKindOf } from './local-names.ts';
import { LongAnswer } from '../reply/long-answer.ts';
import { PlainText } from '../reply/plain-text.ts';
import { giveStream, StreamedAnswer } from '../reply/streamed-answer.ts';
import { thenLinger } from './linger.ts';
import { streamedBody } from './streamed-body.ts';
import { NoFields } from './common-schema.ts';
import { mapParametersOf, readQuery } from './query.ts';
import {
  answerAway,
  requireThere,
  shownOwn,
  shownOwnText,
  wayByPath,
  wayByPool,
  type FleetDeps,
} from '../../fleet/routing/fleet-router.ts';
import { mergeOf, wayByCluster } from '../../fleet/routing/over-clusters.ts';
import { claimInFleet, refuseElsewhere } from '../../fleet/routing/claim-in-fleet.ts';
import { claimKeyIn, toldClaimIn, type ToldClaim } from '../../fleet/routing/claim-key.ts';
import { givePassed, PassedBody } from '../../fleet/routing/passed-answer.ts';
import { wasCutShort } from '../limits/prepared-answer.ts';
import { ClientGone, readJsonBody, readWhole, type JsonBody } from './request-body.ts';
import type { Answer, AnyRequest, Deprecation, Route } from './route.ts';
import { stillAsks, whoAsks, type SessionFinder } from './who-asks.ts';
import {
  refuseIfStrict,
  unknownFields,
  unknownFieldWarning,
  unknownQueryWarnings,
} from './unknown-fields.ts';
import type { CostlyRequest } from '../limits/costly-turns.ts';
import type { RequestLimits } from './request-limits.ts';
import { check } from './validation.ts';

export interface RouterDeps extends CarryOutDeps {
  readonly operations: Pick<Operations, 'claimedBefore' | 'claimPlaces' | 'idempotentRequest'>;
  readonly clients: Clients;
  /** Absent: no request waits for a person. */
  readonly gating?: GatingDeps | undefined;
  /** Finds the person at the console who asks. Absent: nobody does. */
  readonly sessionOf?: SessionFinder | undefined;
  readonly streams: EventStreams;
  readonly limits: RequestLimits;
  readonly terms: ApiTerms;
}

/** Holds what the daemon's owner says of the API. */
export interface ApiTerms {
  /** Says what may stand before the names of what is here. */
  readonly clusterId: string;
  /** When deprecated operations go, as an HTTP date; undefined: that is not settled. */
  readonly sunset: string | undefined;
  /** Absent: it is the REST API, with its pages. */
  readonly surface?: ApiSurface;
  /** Passes on what is on other clusters; absent: there are none. */
  readonly fleet?: FleetDeps;
}

/**
 * The middleware that finds a request's row, and takes it through it: key, path, query, body,
 * operation, answer.
 */
export const routerOf = (routes: readonly Route[], deps: RouterDeps) => {
  const router = new Router<RequestState>({ strict: true, sensitive: true });
  for (const each of routes) {
    // what it is sent is held to the same rules
    const row = each.method === 'POST' && !each.body ? { ...each, body: NoFields } : each;
    const unknownOf = row.body && unknownFields(row.body);
    const served: ServedRoute = {
      ...row,
      queryWarningsOf: unknownQueryWarnings(row.query),
      queryMaps: mapParametersOf(row.query),
      ...(unknownOf ? { unknownOf } : {}),
    };
    const pattern = row.path.replaceAll(/\{(\w+)\}/g, ':$1');
    for (const base of BASES) {
      router.register(
        base + pattern,
        [row.method],
        (context: Context & { params: Record<string, string> }) => answerRow(served, deps, context),
      );
    }
  }
  return router.routes();
};

/** A row with the fields that its body does not have, and what it says of unknown parameters. */
interface ServedRoute extends Route {
  readonly unknownOf?: (body: unknown) => readonly string[];
  readonly queryWarningsOf: (query: string) => readonly string[];
  /** See mapParametersOf. */
  readonly queryMaps: ReadonlySet<string>;
}

const answerRow = async (
  row: ServedRoute,
  deps: RouterDeps,
  context: Context & { params: Record<string, string> },
): Promise<void> => {
  context.state.route = row.path;
  context.state.operation = row.operationId;
  if (row.deprecated) announceDeprecation(row.deprecated, context, deps.terms.sunset);
  const asking = whoAsks(row, deps, context);
  const { caller, session } = asking instanceof Promise ? await asking : asking;
  if (caller) deps.limits.keyRates.count(caller, context.req);
  const mayBegin = caller && deps.limits.loopTurns.take(tenantKey(caller), context.req);
  if (mayBegin) await mayBegin;
  const { fleet } = deps.terms;
  const byPath = fleet && caller && wayByPath(fleet, row, context.params);
  const params = byPath
    ? context.params // for the cluster to check
    : row.params && paramsOf(row.params, context.params, deps.terms.clusterId);
  const query = row.query
    ? check(row.query, readQuery(context.querystring, row.queryMaps))
    : undefined;
  const work = caller && deps.limits.costly.request(tenantKey(caller), row.operationId);
  const turn = row.body ? undefined : work?.begin();
  if (turn) await turn;
  const { value, bytes } = row.body ? await bodyOf(row, deps, { context, work }) : NO_BODY;
  const body = row.body ? check(row.body, value) : undefined;
  if (session && row.body) await stillAsks(session, deps, context);
  const unknown = row.unknownOf?.(value) ?? [];
  if (row.body) refuseIfStrict(context.querystring, unknown);
  warnOfUnknown(row, context, unknown);
  context.state.asked = body;
  const told: ToldClaim = row.opensItself ? toldClaimIn(context, deps.clients) : {};
  const arrived: AnyRequest = {
    caller,
    session,
    params,
    query,
    body,
    mark: undefined,
    opening: undefined,
    seed: undefined,
    step: context.state.step,
    waitMs: told.waitMs,
    signal: () => abortOf(context, caller && ((ended) => deps.clients.followKey(caller, ended))),
    base: () => baseOf(context, deps.clients),
    content: () => streamedBody(context.req, context.res),
    room: roomOf(context, deps.limits.answers, caller),
    localPool: (poolName) =>
      localName('pool', poolName, { clusterId: deps.terms.clusterId, field: 'poolName' }),
    ifMatch:
      (row.method === 'PUT' || row.method === 'PATCH') && row.versioned
        ? revisionsOf(context.req.headers['if-match'])
        : undefined,
    ...negotiation(context),
  };
  const { pass, request } =
    caller && deps.gating && mayBeHeld(deps.gating, row)
      ? await passOf(deps.gating, {
          row,
          context,
          request: arrived,
          caller,
          bytes,
          value,
          unknown,
          api: deps.terms.surface ? 'compatible' : 'REST',
          requireThere:
            fleet && byPath && (() => requireThere(fleet, { way: byPath, caller, context })),
          readStream: () => readWhole(context.req, context.res, deps.limits),
        })
      : { pass: FREE, request: arrived };
  const isMarkable = row.method === 'POST' && row.idempotencyKey !== 'ignored';
  const given = isMarkable ? markOf(context) : undefined;
  const made = row.opensItself ? claimKeyIn(context, deps.clients) : undefined;
  const key = given ?? pass.key ?? made?.key;
  const markedAs = isMarkable ? key : undefined;
  const byQuery = wayByCluster(deps.terms, row, request, context);
  const away = fleet && caller && (byPath ?? wayByPool(fleet, body, query) ?? byQuery);
  const useElsewhere = (work: WorkAway): Promise<Answer> =>
    caller && markedAs !== undefined && pass !== FREE && !deps.terms.surface
      ? answerHeldAway(row, deps, { context, request, caller, key: markedAs, bytes, pass }, work)
      : useAway(pass, work);
  if (fleet && away) {
    const passed = { way: away, caller, row, context, request, bytes, key: markedAs };
    return giveAway(
      context,
      await useElsewhere((use) => answerAway(fleet, { ...passed, use })),
      request,
    );
  }
  const claim = fleet && caller && { fleet, caller, context, request, bytes, pass, key: markedAs };
  const inFleet = claim && (await claimInFleet(row, deps, claim));
  if (inFleet) return giveAway(context, await useElsewhere(inFleet), request);
  if (typeof key === 'string' && caller) {
    const byManager = key === made?.key ? made.use : undefined;
    const { mayBeDone } = told;
    const asked = { context, request, caller, key, byManager, bytes, pass, mayBeDone };
    const opened = claim && refuseElsewhere(row, deps, claim);
    const marked = await answerMarked(row, deps, { ...asked, opened });
    context.state.answered = marked.text;
    return give(
      context,
      { ...marked, text: shownOwnText(fleet, row, request, marked) },
      request.room,
    );
  }
  const answer = row.bodyAs
    ? await thenLinger(context, () => pass.use(() => carryOut(row, deps, request)))
    : await pass.use(() => carryOutInFleet(row, deps, context, request));
  work?.working();
  context.state.answered = answer.body;
  if (answer.body instanceof EventStream)
    return deps.streams.open(context, answer.body, (ended) =>
      caller ? deps.clients.followKey(caller, ended) : () => undefined,
    );
  if (answer.body instanceof StreamedAnswer)
    return giveStream(context, { ...answer, body: answer.body }, deps.limits.unread);
  if (answer.body instanceof PlainText) return givePlainly(context, answer.body, request.room);
  if (answer.body instanceof LongAnswer && answer.body.isLong)
    return givePieces(context, { ...answer, body: answer.body }, deps.limits.unread);
  const text = JSON.stringify(shownOwn(fleet, row, request, answer.body));
  give(context, { status: answer.status, headers: answer.headers, text }, request.room);
  if (answer.revision !== undefined) tagView(context, entityTag(answer.revision, text));
};

const markOf = ({ req }: Context): string | undefined => {
  const mark = req.headers['idempotency-key'];
  return typeof mark === 'string' ? mark : undefined;
};

/** Some of what a manager answers is from all clusters. */
const carryOutInFleet = (
  row: ServedRoute,
  deps: RouterDeps,
  context: Context,
  request: AnyRequest,
): Promise<Answer> | Answer => {
  const { fleet } = deps.terms;
  const merge = fleet && mergeOf(row, request, deps.terms.surface?.listOverClusters);
  if (!fleet || !merge || !request.caller) return carryOut(row, deps, request);
  const own = (changed: Partial<AnyRequest>) => carryOut(row, deps, { ...request, ...changed });
  return merge(fleet, { caller: request.caller, context, request, own });
};

/** Gives what another cluster answered. */
const giveAway = (context: Context, answer: Answer, { room }: AnyRequest): void => {
  if (answer.body instanceof PassedBody)
    return givePassed(context, { ...answer, body: answer.body });
  context.state.answered = answer.body;
  const { status, headers } = answer;
  give(context, { status, headers, text: JSON.stringify(answer.body) }, room);
};

const NO_BODY: JsonBody = { value: undefined, bytes: Buffer.alloc(0) };

const bodyOf = (
  { method }: ServedRoute,
  { limits: { arriving } }: RouterDeps,
  { context, work }: { readonly context: Context; readonly work: CostlyRequest | undefined },
): Promise<JsonBody> =>
  readJsonBody(context.req, context.res, {
    arriving,
    mergePatch: method === 'PATCH',
    turn: () => work?.begin(),
  });

/** Once query and body are found good: what refuses a field names it already. */
const warnOfUnknown = (
  { queryWarningsOf }: ServedRoute,
  context: Context,
  unknown: readonly string[],
): void => {
  const warnings = [...queryWarningsOf(context.querystring), ...unknown.map(unknownFieldWarning)];
  if (warnings.length > 0) context.append('Warning', warnings);
};

const paramsOf = (
  params: NonNullable<Route['params']>,
  given: Record<string, string>,
  clusterId: string,
): unknown => {
  const local = { ...given };
  for (const name in params.names)
    local[name] = localName(nameKindOf(params.names[name], given), given[name] ?? '', {
      clusterId,
      field: name,
    });
  const result = params.schema.safeParse(local);
  if (!result.success) throw params.otherwise(local);
  return result.data;
};

const announceDeprecation = (
  { since, successor }: Deprecation,
  context: Context & { params: Record<string, string> },
  sunset: string | undefined,
): void => {
  const link =
    askedBase(context.path) +
    successor.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(context.params[name] ?? ''),
    );
  context.set('Deprecation', `@${since}`);
  context.set('Link', `<${link}>; rel="successor-version"`);
  if (sunset !== undefined) context.set('Sunset', sunset);
};

const negotiation = (context: Context): Pick<AnyRequest, 'header' | 'accepts'> => ({
  header: (name) => {
    const value = context.req.headers[name];
    return typeof value === 'string' ? value : undefined;
  },
  accepts: (first, ...others) => {
    const liked = context.accepts(first, ...others);
    return typeof liked === 'string' ? liked : first;
  },
});

/** As the client sees this daemon, and under `/v1` where it asked there. */
const baseOf = ({ req, path }: Context, clients: Clients): string =>
  clients.base(req) + askedBase(path);

const abortOf = ({ res }: Context, followKey: FollowKey | undefined): AbortSignal => {
  const controller = new AbortController();
  const gone = (): void => {
    controller.abort(new ClientGone('the client left'));
  };
  if (res.destroyed) {
    gone();
    return controller.signal;
  }
  const forgetKey = followKey?.(() => {
    controller.abort(invalidApiKey());
  });
  res.once('close', () => {
    forgetKey?.();
    if (!res.writableFinished || wasCutShort(res)) gone();
  });
  return controller.signal;
};
