import type { LogsRequest, Operations } from '../../operations/operations.ts';
import { EventStream } from '../event-streams.ts';
import { PlainText } from '../plain-text.ts';
import { presentLogEvents, presentLogs, presentLogText } from '../presenters/present-logs.ts';
import { ok, route, type Route } from '../route.ts';
import { LogsQuery, SandboxLogs } from '../schemas/logs.ts';
import { SandboxPath } from '../schemas/sandboxes.ts';

export const logRoutes = (operations: Operations): readonly Route[] => [
  route({
    operationId: 'getSandboxLogs', method: 'GET', path: '/sandboxes/{sandboxId}/logs', access: 'tenant', summary: 'Read what a sandbox printed, or follow it',
    params: SandboxPath, query: LogsQuery, answers: { 200: SandboxLogs }, alsoAs: ['text/plain', 'text/event-stream'],
    refusals: ['SANDBOX_NOT_FOUND', 'LOGS_GONE', 'TOO_MANY_STREAMS'],
    handle: async ({ caller, params: { sandboxId }, query, header, accepts }) => {
      const { container, tailLines, sinceSeconds, timestamps = false, follow = false } = query;
      const request: LogsRequest = {
        tailLines, ...(container === undefined ? {} : { container }), ...(sinceSeconds === undefined ? {} : { sinceMs: sinceSeconds * 1_000 }),
      };
      if (follow) {
        const after = header('last-event-id');
        const { batches, close } = await operations.followSandboxLogs(caller, sandboxId, { ...request, ...(after === undefined ? {} : { after }) });
        return ok(new EventStream((signal) => presentLogEvents(sandboxId, batches(signal), { timestamps, signal }), close));
      }
      const view = await operations.sandboxLogs(caller, sandboxId, request);
      return ok(accepts('application/json', 'text/plain') === 'text/plain'
        ? new PlainText(presentLogText(view, { timestamps }))
        : presentLogs(view, { timestamps }));
    },
  }),
];
