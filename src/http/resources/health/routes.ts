import type { Operations } from '../../../services/operations.ts';
import { ok, route, type Route } from '../../corridor/route.ts';
import { Health, ReadinessReport, type ReadinessWire } from './schema.ts';

export const healthRoutes = (operations: Operations): readonly Route[] => [
  route({
    operationId: 'getHealth',
    method: 'GET',
    path: '/healthz',
    access: 'open',
    summary: 'Check whether the daemon is running',
    answers: { 200: Health },
    refusals: [],
    handle: () => ok({ status: 'ok' }),
  }),
  route({
    operationId: 'getReadiness',
    method: 'GET',
    path: '/readyz',
    access: 'open',
    summary: 'Check whether the daemon can work, and how well it isolates',
    answers: { 200: ReadinessReport, 503: ReadinessReport },
    refusals: [],
    handle: () => {
      const { ready, problems, warnings, isolation } = operations.readiness();
      const body: ReadinessWire = {
        status: ready ? 'ready' : 'not ready',
        problems: [...problems],
        warnings: [...warnings],
        isolation,
      };
      return ready ? ok(body) : { status: 503, body, headers: { 'Retry-After': '1' } };
    },
  }),
];
