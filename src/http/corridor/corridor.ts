import Router, { type RouterContext } from '@koa/router';
import type { Next } from 'koa';
import type { RequestState } from '../reply/context.ts';
import { askedBase, withoutBase } from '../limits/request-head.ts';
import type { EventStreams } from '../reply/event-streams.ts';
import type { Admission } from '../limits/admission.ts';
import type { Clients } from '../limits/clients.ts';
import type { ApiSurface } from './api-surface.ts';
import type { GatingDeps } from './approval-gating.ts';
import { NoFields } from './common-schema.ts';
import type { IdempotencyDeps } from './idempotency.ts';
import { mapParametersOf } from './query.ts';
import type { Deprecation, Route } from './route.ts';
import { approve } from './stages/approve.ts';
import {
  Exchange,
  type RoutedContext,
  type ServedRoute,
  type Stage,
  walk,
} from './stages/exchange.ts';
import { identify, type SessionFinder } from './stages/identify.ts';
import { onlyHere } from './stages/named-cluster.ts';
import { once } from './stages/once.ts';
import { perform } from './stages/perform.ts';
import { read } from './stages/read.ts';
import { reply } from './stages/reply.ts';
import { unknownFields, unknownQueryWarnings } from './validation.ts';

export interface CorridorDeps extends IdempotencyDeps {
  readonly clients: Clients;
  /** Absent: no request waits for a person. */
  readonly gating?: GatingDeps;
  /** Finds the person at the console who asks. Absent: nobody does. */
  readonly sessionOf?: SessionFinder;
  readonly streams: EventStreams;
  readonly admission: Admission;
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
  /** Makes the stages that only a manager has. Absent: there are no other clusters. */
  readonly manager?: (deps: CorridorDeps) => ManagerStages;
}

/** The stages of a manager, which passes on what is on other clusters. */
export interface ManagerStages {
  /** Finds the cluster that the path names. */
  readonly locate: Stage;
  /** Has another cluster answer, or all of them; what is here goes on. */
  readonly forward: Stage;
}

/**
 * The way of every request that has a row, on both ports. `app.ts` has the stages before these:
 * they trace, measure, log and audit a request, and write a refusal.
 */
const stagesOf = (deps: CorridorDeps): readonly Stage[] => {
  const { gating, terms } = deps;
  const manager = terms.manager?.(deps);
  return [
    reply(deps),
    identify(deps),
    ...(manager ? [manager.locate] : []),
    read(deps),
    ...(gating ? [approve({ ...deps, gating })] : []),
    manager ? manager.forward : onlyHere(deps),
    once(deps),
    perform(deps),
  ];
};

/** The middleware that finds a request's row, and takes the request through the stages. */
export const corridorOf = (routes: readonly Route[], deps: CorridorDeps) => {
  const stages = stagesOf(deps);
  const enter = (row: ServedRoute, context: RoutedContext): Promise<void> => {
    announce(row, context, deps.terms.sunset);
    return walk(stages, new Exchange(row, context));
  };
  const router = new Router<RequestState>({ strict: true, sensitive: true });
  /** By method and path: a row whose path has no parameter needs no search. */
  const fixed = new Map<string, ServedRoute>();
  for (const row of routes) {
    const served = servedOf(row);
    if (!row.path.includes('{')) fixed.set(`${row.method} ${row.path}`, served);
    router.register(row.path.replaceAll(/\{(\w+)\}/g, ':$1'), [row.method], (context) =>
      enter(served, context),
    );
  }
  const search = router.routes();
  return (context: RouterContext<RequestState>, next: Next): Promise<unknown> => {
    const path = withoutBase(context.path);
    const row = fixed.get(`${context.method} ${path}`);
    if (row) return enter(row, Object.assign(context, { params: {} }));
    context.newRouterPath = path;
    return search(context, next);
  };
};

const servedOf = (row: Route): ServedRoute => {
  // what it is sent is held to the same rules
  const body = row.method === 'POST' ? (row.body ?? NoFields) : row.body;
  return {
    ...row,
    body,
    queryWarningsOf: unknownQueryWarnings(row.query),
    queryMaps: mapParametersOf(row.query),
    unknownOf: body && unknownFields(body),
  };
};

/** Names the row for logs, metrics and traces, and announces its end (RFC 9745, RFC 8594). */
const announce = (row: ServedRoute, context: RoutedContext, sunset: string | undefined): void => {
  context.state.route = row.path;
  context.state.operation = row.operationId;
  if (row.deprecated) announceDeprecation(row.deprecated, context, sunset);
};

const announceDeprecation = (
  { since, successor }: Deprecation,
  context: RoutedContext,
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
