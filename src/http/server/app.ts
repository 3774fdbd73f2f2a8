import Koa from 'koa';
import type { AuditSink } from '../../contracts/audit.ts';
import type { Log } from '../../contracts/log.ts';
import { silentMetrics, type Metrics } from '../../contracts/metrics.ts';
import type { Tracer, TraceScope } from '../../contracts/tracing.ts';
import type { Operations } from '../../services/operations.ts';
import { sessionFinder } from '../console/session-finder.ts';
import { approvalPages } from '../console/approval-pages.ts';
import { consolePages, type ConsoleDeps } from '../console/console.ts';
import {
  audited,
  measured,
  accessLog,
  admit,
  errors,
  requestId,
  notes,
  traced,
} from './middleware.ts';
import type { RequestState } from '../reply/context.ts';
import { inNamespace } from '../resources/in-namespace.ts';
import { pages } from './pages.ts';
import { PoolPreviews } from '../resources/pools/previews.ts';
import type { Route } from '../corridor/route.ts';
import { nothingMatched } from '../corridor/nothing-matched.ts';
import { corridorOf, type CorridorDeps } from '../corridor/corridor.ts';
import { apiKeyRoutes } from '../resources/keys/routes.ts';
import { approvalRoutes } from '../resources/approvals/routes.ts';
import { auditRoutes } from '../resources/audit/routes.ts';
import { catalogueRoutes } from '../resources/catalogue/routes.ts';
import { envMemberRoutes } from '../resources/envs/member-routes.ts';
import { envRoutes } from '../resources/envs/routes.ts';
import { eventRoutes } from '../resources/events/routes.ts';
import { execRoutes } from '../resources/sandboxes/exec-routes.ts';
import { debugActorRoutes } from '../resources/debug/actor-routes.ts';
import { debugRoutes } from '../resources/debug/routes.ts';
import { fileRoutes } from '../resources/files/routes.ts';
import { healthRoutes } from '../resources/health/routes.ts';
import { logLevelRoutes } from '../resources/debug/log-level-routes.ts';
import { managerRoutes } from '../resources/managers/routes.ts';
import { processRoutes } from '../resources/processes/routes.ts';
import { logRoutes } from '../resources/sandboxes/log-routes.ts';
import { poolRoutes } from '../resources/pools/routes.ts';
import { quotaRoutes } from '../resources/quotas/routes.ts';
import { sandboxRoutes } from '../resources/sandboxes/routes.ts';
import { templateRoutes } from '../resources/templates/routes.ts';

/** Logs, measures, traces and audits requests. */
export interface RequestWatchers {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly tracer?: Tracer;
  /** Propagates the trace to other services. */
  readonly traceScope?: TraceScope;
  readonly audit?: AuditSink;
}

export interface AppDeps extends Pick<CorridorDeps, 'clients' | 'streams' | 'admission' | 'terms'> {
  readonly operations: Operations;
  readonly watchers: RequestWatchers;
  /** Then every request gets 503. */
  readonly stopping: () => boolean;
  readonly people?: PeopleDeps;
}

/** Sessions, console and approvals for people. */
export interface PeopleDeps extends Pick<CorridorDeps, 'gating' | 'sessionOf'> {
  /** Absent without a console. */
  readonly console?: Omit<ConsoleDeps, 'clients' | 'arriving' | 'more'>;
}

export const routesOf = (
  operations: Operations,
  previews = new PoolPreviews({ metrics: silentMetrics }),
): readonly Route[] => [
  ...healthRoutes(operations),
  ...sandboxRoutes(operations),
  ...execRoutes(operations),
  ...logRoutes(operations),
  ...processRoutes(operations),
  ...fileRoutes(operations),
  ...eventRoutes(operations).map(inNamespace),
  ...[
    ...poolRoutes(operations, previews),
    ...envRoutes(operations),
    ...envMemberRoutes(operations),
  ].map(inNamespace),
  ...templateRoutes(operations),
  ...apiKeyRoutes(operations).map(inNamespace),
  ...quotaRoutes(operations),
  ...catalogueRoutes(operations),
  ...approvalRoutes(operations),
  ...auditRoutes(operations),
  ...debugRoutes(operations),
  ...debugActorRoutes(operations),
  ...logLevelRoutes(operations),
  ...managerRoutes(operations),
];

export const createApp = ({
  operations,
  watchers: { log, metrics, tracer, traceScope, audit },
  stopping,
  people = {},
  ...deps
}: AppDeps): Koa<RequestState> => {
  const { surface } = deps.terms;
  const { console, gating } = people;
  const sessionOf = people.sessionOf ?? (console && sessionFinder(console));
  const app = new Koa<RequestState>({ env: 'production' });
  app.use(requestId(log));
  app.use(traced(tracer, traceScope));
  app.use(
    notes(log, [
      accessLog(log),
      measured(metrics),
      ...(audit ? [audited(audit, surface?.named)] : []),
    ]),
  );
  app.use(errors(log, deps.admission, surface?.shown));
  app.use(admit(stopping));
  const routes = surface?.routes ?? routesOf(operations, new PoolPreviews({ metrics }));
  app.use(corridorOf(routes, { ...deps, gating, sessionOf, operations, log }));
  if (!surface) app.use(pages(routes, { hasConsole: console !== undefined }));
  if (console)
    app.use(
      consolePages({
        ...console,
        more: approvalPages({ operations, routes }),
        clients: deps.clients,
        arriving: deps.admission.arriving,
      }),
    );
  app.use(surface?.otherwise ?? nothingMatched(deps.clients));
  // Too late for an error body: the connection broke.
  app.on('error', (error: unknown) => log.debug({ error }, 'answer-failed'));
  return app;
};
