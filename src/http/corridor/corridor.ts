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
  /** Absent if approvals are off. */
  readonly gating?: GatingDeps;
  readonly sessionOf?: SessionFinder;
  readonly streams: EventStreams;
  readonly admission: Admission;
  readonly terms: ApiTerms;
}

export interface ApiTerms {
  /** Optional prefix of local names. */
  readonly clusterId: string;
  /** An HTTP date; undefined if not decided. */
  readonly sunset: string | undefined;
  readonly surface?: ApiSurface;
  readonly manager?: (deps: CorridorDeps) => ManagerStages;
}

export interface ManagerStages {
  readonly locate: Stage;
  /** Local requests continue. */
  readonly forward: Stage;
}

/** Those in `app.ts` run first: they trace, measure, log and audit, and write refusals. */
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

export const corridorOf = (routes: readonly Route[], deps: CorridorDeps) => {
  const stages = stagesOf(deps);
  const enter = (row: ServedRoute, context: RoutedContext): Promise<void> => {
    announce(row, context, deps.terms.sunset);
    return walk(stages, new Exchange(row, context));
  };
  const router = new Router<RequestState>({ strict: true, sensitive: true });
  /** A path without parameters needs no router search. */
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
  // an unexpected body is still validated
  const body = row.method === 'POST' ? (row.body ?? NoFields) : row.body;
  return {
    ...row,
    body,
    queryWarningsOf: unknownQueryWarnings(row.query),
    queryMaps: mapParametersOf(row.query),
    unknownOf: body && unknownFields(body),
  };
};

/** RFC 9745 and RFC 8594. */
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
