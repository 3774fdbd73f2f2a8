import type { Operations } from '../../../services/operations.ts';
import { refuseAdminFields } from '../../corridor/admin-fields.ts';
import { EventStream } from '../../reply/event-streams.ts';
import { presentEvent, presentEvents } from './presenter.ts';
import { ok, route, type Route } from '../../corridor/route.ts';
import { Event, EventList, EventsQuery } from './schema.ts';
import { PoolPath } from '../pools/schema.ts';
import { SandboxPath } from '../sandboxes/schema.ts';

export const eventRoutes = (operations: Operations): readonly Route[] => [
  route({
    operationId: 'listSandboxEvents',
    method: 'GET',
    path: '/sandboxes/{sandboxId}/events',
    access: 'tenant',
    summary: 'List the events of a sandbox',
    params: SandboxPath,
    answers: { 200: EventList },
    refusals: ['SANDBOX_NOT_FOUND'],
    handle: async ({ caller, params }) => {
      const events = await operations.sandboxEvents(caller, params.sandboxId);
      return ok({ items: events.map(presentEvent), total: events.length });
    },
  }),
  route({
    operationId: 'listPoolEvents',
    method: 'GET',
    path: '/sandboxpools/{name}/events',
    access: 'tenant',
    summary: 'List the events of a pool',
    params: PoolPath,
    answers: { 200: EventList },
    refusals: ['POOL_NOT_FOUND', 'UNAVAILABLE'],
    handle: async ({ caller, params }) => {
      const events = await operations.poolEvents(caller, params.name);
      return ok({ items: events.map(presentEvent), total: events.length });
    },
  }),
  route({
    operationId: 'followEvents',
    method: 'GET',
    path: '/events',
    access: 'tenant',
    summary: "Follow the events of the caller's sandboxes and pools",
    query: EventsQuery,
    answers: { 200: Event },
    media: { only: 'text/event-stream' },
    refusals: ['ADMIN_REQUIRED', 'TOO_MANY_STREAMS'],
    handle: ({ caller, query, incoming }) => {
      refuseAdminFields(caller, query, ['all']);
      const after = incoming.header('last-event-id');
      const { batches, close } = operations.followEvents(caller, {
        all: query.all ?? false,
        after,
      });
      const { begin = false } = query;
      return ok(new EventStream((signal) => presentEvents(batches(signal), { begin }), close));
    },
  }),
];
