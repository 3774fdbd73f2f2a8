import Koa from 'koa';
import type { Clock } from '../contracts/clock.ts';
import type { Log } from '../contracts/log.ts';
import type { Operations } from '../operations/operations.ts';
import type { RequestState } from './context.ts';
import type { EventStreams } from './event-streams.ts';
import type { IdempotencyDeps } from './idempotency.ts';
import { accessLog, admit, errors, requestId } from './middleware.ts';
import { pages } from './pages.ts';
import type { Route } from './route.ts';
import { nothingMatched, routerOf, type RouterDeps } from './router.ts';
import { apiKeyRoutes } from './routes/api-key-routes.ts';
import { eventRoutes } from './routes/event-routes.ts';
import { execRoutes } from './routes/exec-routes.ts';
import { debugRoutes } from './routes/debug-routes.ts';
import { healthRoutes } from './routes/health-routes.ts';
import { logRoutes } from './routes/log-routes.ts';
import { poolRoutes } from './routes/pool-routes.ts';
import { sandboxRoutes } from './routes/sandbox-routes.ts';

export interface AppDeps extends Pick<RouterDeps, 'clients' | 'gate' | 'arriving' | 'streams'>, Partial<Pick<RouterDeps, 'clusterId' | 'sunset'>> {
  readonly operations: Operations;
  readonly log: Log;
  readonly clock: Clock;
  /** From then on every request is refused with 503. */
  readonly stopping: () => boolean;
  /** Keeps the answers to requests with an Idempotency-Key. */
  readonly requests: IdempotencyDeps['requests'];
  readonly streams: EventStreams;
}

/** Every operation of the API. */
export const routesOf = (operations: Operations): readonly Route[] => [
  ...healthRoutes(operations),
  ...sandboxRoutes(operations),
  ...execRoutes(operations),
  ...logRoutes(operations),
  ...eventRoutes(operations),
  ...poolRoutes(operations),
  ...apiKeyRoutes(operations),
  ...debugRoutes(operations),
];

export const createApp = ({ operations, log, clock, stopping, clusterId = 'local', sunset, ...deps }: AppDeps): Koa<RequestState> => {
  const app = new Koa<RequestState>({ env: 'production' });
  app.use(requestId());
  app.use(accessLog(log, clock));
  app.use(errors(log));
  app.use(admit(stopping));
  const routes = routesOf(operations);
  app.use(pages(routes));
  app.use(routerOf(routes, { ...deps, log, clusterId, sunset }));
  app.use(nothingMatched);
  // What comes here is past the error body: a connection that broke while the answer was written.
  app.on('error', (error: unknown) => log.debug({ error }, 'answer failed'));
  return app;
};
