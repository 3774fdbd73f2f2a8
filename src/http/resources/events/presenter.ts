import {
  eventMessageOf,
  eventTypeOf,
  type EventBatch,
  type EventRecord,
} from '../../../model/event.ts';
import type { ServerEvent } from '../../reply/event-streams.ts';
import type { EventWire } from './schema.ts';
import { timestampOf } from '../../corridor/common-schema.ts';

export const presentEvent = (event: EventRecord): EventWire => ({
  time: timestampOf(event.at),
  type: eventTypeOf(event),
  reason: event.reason,
  message: eventMessageOf(event),
  sandboxId: event.sandboxId,
  poolName: event.poolName || undefined,
  approvalId: 'approvalId' in event ? event.approvalId : undefined,
  namespace: event.owner.namespace,
  team: event.owner.team,
  user: event.owner.user,
  ...('end' in event
    ? {
        endReason: event.end.reason,
        ...(event.end.exitCode === null ? {} : { exitCode: event.end.exitCode }),
      }
    : {}),
});

/** `reset` marks missed events. `begin`, on request, carries the id at which the stream starts. */
export async function* presentEvents(
  batches: AsyncIterable<EventBatch>,
  { begin }: { readonly begin: boolean },
): AsyncGenerator<ServerEvent, void, undefined> {
  for await (const { events, missed, begins } of batches) {
    if (begin && begins !== undefined) yield { event: 'begin', id: String(begins), data: {} };
    if (missed) yield { event: 'reset', data: {} };
    for (const { id, event } of events) yield { id: String(id), data: presentEvent(event) };
  }
}
