import { jsonLength } from '../../../lib/json-text.ts';
import type { LogBatch } from '../../../contracts/sandbox-driver.ts';
import type { AnswerRoom } from '../../../actors/sandbox/commands/answer-budget.ts';
import type { LogsRequest } from '../../../actors/sandbox/commands/sandbox-operations.ts';
import type { Operations } from '../../../services/operations.ts';
import { LOG_LINE_BYTES } from '../../../actors/sandbox/commands/sandbox-logs.ts';
import { EventStream } from '../../reply/event-streams.ts';
import { PlainText } from '../../reply/plain-text.ts';
import { presentLogEvents, presentLogs, presentLogText } from './log-presenter.ts';
import { ok, route, type Route } from '../../corridor/route.ts';
import { LogsQuery, SandboxLogs } from './log-schema.ts';
import { SandboxPath } from './schema.ts';

export const logRoutes = (operations: Operations): readonly Route[] => [
  route({
    operationId: 'getSandboxLogs',
    method: 'GET',
    path: '/sandboxes/{sandboxId}/logs',
    access: 'tenant',
    summary: 'Read the output of a sandbox, or follow it',
    params: SandboxPath,
    query: LogsQuery,
    answers: { 200: SandboxLogs },
    media: { also: ['text/plain', 'text/event-stream'] },
    refusals: ['SANDBOX_NOT_FOUND', 'LOGS_GONE', 'TOO_MANY_STREAMS'],
    handle: async ({
      caller,
      params: { sandboxId },
      query,
      incoming: { header, accepts },
      room,
    }) => {
      const { container, tailLines, sinceSeconds, timestamps = false, follow = false } = query;
      const request: LogsRequest = {
        tailLines,
        container,
        sinceMs: sinceSeconds === undefined ? undefined : sinceSeconds * 1_000,
      };
      room().hold(bytesToRead(tailLines));
      if (follow) {
        const after = header('last-event-id');
        const { batches, heldBytes, close } = await operations.followSandboxLogs(
          caller,
          sandboxId,
          { ...request, after },
        );
        room().hold(heldBytes);
        return ok(
          new EventStream(
            (signal) =>
              presentLogEvents(sandboxId, thenRelease(batches(signal), room()), {
                timestamps,
                signal,
              }),
            close,
          ),
        );
      }
      const view = await operations.sandboxLogs(caller, sandboxId, request);
      const text = presentLogText(view, { timestamps });
      if (accepts('application/json', 'text/plain') === 'text/plain')
        return ok(new PlainText(text));
      room().hold(jsonLength(text));
      return ok(presentLogs(view, text));
    },
  }),
];

/** Read to find the last lines. */
const READ_BYTES = 2 << 20;

const bytesToRead = (lines: number): number => READ_BYTES + lines * LOG_LINE_BYTES;

/** Releases the memory after the client read the first batch; the rest needs little. */
async function* thenRelease(
  batches: AsyncIterable<LogBatch>,
  room: AnswerRoom,
): AsyncGenerator<LogBatch, void, undefined> {
  for await (const batch of batches) {
    yield batch;
    room.release();
  }
}
