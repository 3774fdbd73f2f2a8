import type { Readable } from 'node:stream';
import { boundsOf } from '../../lib/streams/json-reader.ts';
import { EffectIsOver, IS_OVER } from '../../model/approvals/approval-refusals.ts';
import { AnswerLost, clusterUnavailable } from '../../model/fleet/cluster-refusals.ts';
import { poolNotFound, Refusal, type RefusalCode } from '../../model/refusals.ts';
import type { Caller } from '../../model/tenant.ts';
import type { FleetOperations, WayToCluster } from '../replication/fleet-operations.ts';
import { isErrorCode } from '../../http/reply/error-table.ts';
import { nameKindOf, readName } from '../../http/corridor/local-names.ts';
import { hasBody } from '../../http/corridor/request-body.ts';
import type { Answer, AnyRequest, Route } from '../../http/corridor/route.ts';
import type { Context } from '../../http/reply/context.ts';
import { isMerged, poolNameIn, shownInFleet } from './fleet-names.ts';
import { askAgain, newClaimKey, toldTerms } from './claim-key.ts';
import { targetOf, type PassedRequest, type Passing } from './pass-on.ts';
import { type SurfaceInFleet, answerFrom, readObject } from './passed-answer.ts';
import { routeHeaders } from './passed-headers.ts';

export interface FleetDeps {
  readonly fleet: FleetOperations;
  readonly passing: Passing;
  /** Absent for the REST API. */
  readonly surface?: SurfaceInFleet;
}

/**
 * Undefined for the manager's own cluster, or a malformed name. Refuses as FleetOperations.wayTo
 * does.
 */
export const wayByPath = (
  { fleet, passing }: FleetDeps,
  row: Pick<Route, 'params' | 'path'>,
  params: Readonly<Record<string, string>>,
): WayToCluster | undefined => {
  if (row.path.startsWith('/envs/')) return undefined; // the env decides where its members are
  const { names = {} } = row.params ?? {};
  for (const name in names) {
    const cluster = readName(nameKindOf(names[name], params), params[name] ?? '')?.cluster;
    if (cluster !== undefined && cluster !== fleet.clusterId) return passing.wayTo(fleet, cluster);
  }
  return undefined;
};

export const wayByPool = (
  { fleet, passing, surface }: FleetDeps,
  ...asked: readonly unknown[]
): WayToCluster | undefined => {
  for (const each of asked) {
    const cluster = surface
      ? surface.clusterOf(each)
      : readName('pool', poolNameIn(each) ?? '')?.cluster;
    if (cluster !== undefined && cluster !== fleet.clusterId) return passing.wayTo(fleet, cluster);
  }
  return undefined;
};

interface OwnRequest {
  readonly row: Pick<Route, 'path' | 'operationId'>;
  readonly request: Pick<AnyRequest, 'incoming' | 'query'>;
}

export const shownOwn = (
  { surface, fleet: { clusterId } }: FleetDeps,
  { row, request }: OwnRequest,
  body: object,
): object =>
  !surface && !isMerged(row, request) && Object.getPrototypeOf(body) === Object.prototype
    ? shownInFleet(row, body, { clusterId, base: request.incoming.base, isOwn: true })
    : body;

/** Stored answers keep names without a cluster, since other replicas also replay them. */
export const shownOwnText = (
  deps: FleetDeps,
  own: OwnRequest,
  { status, text }: { readonly status: number; readonly text: string },
): string =>
  !deps.surface && status < 400
    ? JSON.stringify(shownOwn(deps, own, JSON.parse(text) as object))
    : text;

export interface Away {
  readonly way: WayToCluster;
  readonly caller: Caller;
  readonly row: Pick<Route, 'operationId' | 'body' | 'media' | 'path'>;
  readonly context: Context;
  readonly request: AnyRequest;
  readonly bytes: Buffer;
  readonly key?: string;
  /** If absent, the wait of the body or of the API. */
  readonly waitMs?: number;
}

/**
 * Forwards a request to another cluster. A claim carries the client's key or the manager's, and a
 * retry repeats it, so it is made at most once even if its answer is lost. Throws EffectIsOver for
 * an approved claim whose sandbox has ended.
 */
export const answerAway = async (deps: FleetDeps, away: Away): Promise<Answer> => {
  if (away.row.operationId !== 'claimSandbox') return await answerOver(deps, away);
  let given: Answer;
  try {
    given = await (deps.surface ? answerOver(deps, away) : claimOnceAway(deps, away));
  } catch (error) {
    if (error instanceof Refusal) refuseOver(error.detail);
    throw error;
  }
  if (given.status === 409) refuseOver((given.body as { readonly detail?: unknown }).detail);
  return given;
};

const refuseOver = (detail: unknown): void => {
  const { outcome } = (detail ?? {}) as { readonly outcome?: unknown };
  if (outcome === IS_OVER) throw new EffectIsOver();
};

const claimOnceAway = async (deps: FleetDeps, away: Away): Promise<Answer> => {
  const claimKey = away.key === undefined ? newClaimKey() : undefined;
  const signal = away.request.signal();
  try {
    return await answerOver(deps, { ...away, signal, claimKey: claimKey?.first });
  } catch (error) {
    if (!(error instanceof AnswerLost)) throw error;
    const { fleet, passing } = deps;
    return await askAgain({
      lost: error,
      clusterId: away.way.clusterId,
      deps: { fleet, clock: passing.clock },
      signal,
      ask: async (way, withinMs) => {
        const again = { way, signal, claimKey: claimKey?.again, withinMs, mayBeDone: true };
        const answer = await answerOver(deps, { ...away, ...again });
        return claimKey ? withoutReplayed(answer) : answer;
      },
    });
  }
};

/** The manager retried, not the client. */
const withoutReplayed = ({ headers = {}, ...answer }: Answer): Answer => {
  const { 'idempotency-replayed': _replayed, ...others } = headers;
  return { ...answer, headers: others };
};

interface AwayOver extends Away, Partial<Pick<PassedRequest, 'signal' | 'claimKey' | 'withinMs'>> {
  readonly mayBeDone?: boolean;
}

const answerOver = async (
  { passing, surface }: FleetDeps,
  { way, caller, row, context, request, bytes, key, waitMs, ...terms }: AwayOver,
): Promise<Answer> => {
  const { signal = request.signal(), mayBeDone = request.keyed?.opening.mayBeDone } = terms;
  const answer = await passing.pass({
    way,
    caller,
    request: context.req,
    ...(surface && {
      ...{ base: surface.base, without: surface.secrets },
      ...asListed(surface, context, request),
    }),
    ...bodyOf({
      row,
      context,
      request,
      bytes: surface ? asClaimed(surface, row, bytes) : bytes,
    }),
    requestId: context.state.requestId,
    key,
    claimTerms:
      row.operationId === 'claimSandbox'
        ? toldTerms({ waitMs: waitMs ?? surface?.waitMs, mayBeDone })
        : undefined,
    claimKey: terms.claimKey,
    withinMs: terms.withinMs,
    signal,
  });
  const { clusterId } = way;
  const { limit } = (request.query ?? {}) as { readonly limit?: number };
  const given = await answerFrom(answer, {
    ...{ limit, clusterId, row, context, surface, caller },
    share: passing.share,
    base: request.incoming.base(),
    room: request.room,
  });
  if (row.operationId === 'createExecToken' && given.status === 200) {
    const { token } = given.body as { readonly token?: unknown };
    if (!passing.tokens.remember(clusterId, token, caller))
      throw clusterUnavailable(clusterId, 'returned no token');
  }
  return { ...given, headers: { ...given.headers, ...routeHeaders(way) } };
};

const FOUND_MS = 10_000;

/** Such as `/v1/sandboxes/w1.{uuid}`. */
const NAMED = /^((?:\/v[12])?\/(?:sandboxes|sandboxpools)\/[^/]+)(?:\/|$)/;

/** Checks before an approval is requested. Refuses as that cluster does. */
export const requireThere = async (
  { passing, surface }: Pick<FleetDeps, 'passing' | 'surface'>,
  { way, caller, context }: Pick<Away, 'way' | 'caller' | 'context'>,
): Promise<void> => {
  const [, named] = NAMED.exec(context.path) ?? [];
  if (named === undefined) return;
  const answer = await passing.pass({
    ...{ way, caller, request: context.req, requestId: context.state.requestId },
    signal: AbortSignal.timeout(FOUND_MS),
    withinMs: FOUND_MS,
    base: surface?.base,
    without: surface?.secrets,
    target: named.replace(/^\/v2/, ''),
  });
  if (answer.statusCode !== 404) return void answer.destroy();
  const { errorCode, error } = (await readObject(answer, {
    ...boundsOf(0, 0),
    work: (work) => passing.share.work(way.clusterId, work),
  })) as { readonly errorCode?: unknown; readonly error?: unknown };
  if (errorCode === 'POOL_NOT_FOUND')
    throw poolNotFound(decodeURIComponent(named.replace(/^.*\//, '')));
  if (typeof errorCode === 'string' && isErrorCode(errorCode) && errorCode !== 'INTERNAL')
    throw new Refusal(errorCode as RefusalCode, String(error).slice(0, 256));
};

const asClaimed = (
  { claimOf }: SurfaceInFleet,
  { operationId }: Away['row'],
  bytes: Buffer,
): Buffer =>
  operationId === 'claimSandbox'
    ? Buffer.from(JSON.stringify(claimOf(JSON.parse(bytes.toString()) as object)))
    : bytes;

const asListed = (
  { poolOf, poolParameter }: SurfaceInFleet,
  context: Context,
  { query }: Pick<AnyRequest, 'query'>,
): Pick<PassedRequest, 'target'> => {
  const pool = poolOf(query);
  return pool === undefined ? {} : { target: targetOf(context, { [poolParameter]: pool }) };
};

const bodyOf = ({
  row,
  context,
  request,
  bytes,
}: Pick<Away, 'row' | 'context' | 'request' | 'bytes'>): { readonly body?: Readable | Buffer } => {
  if (row.media?.takes) return hasBody(context.req) ? { body: request.incoming.content() } : {};
  return row.body ? { body: bytes } : {};
};
