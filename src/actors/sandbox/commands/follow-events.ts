import type { EventFeed } from '../../runtime/event-feed.ts';
import { tooManyStreams } from '../../../model/limit-refusals.ts';
import { tenantKey } from '../../../model/tenant.ts';
import type { SandboxOperations } from './sandbox-operations.ts';
import { KeyedSemaphore } from '../../../lib/keyed-semaphore.ts';

const MOST_STREAMS_OF_TENANT = 16;

/**
 * Follows what happens to the caller's sandboxes and pools, or to everybody's (operation `GET
 * /events`). At most 16 at a time of one tenant.
 */
export const followEvents = ({
  events,
}: {
  readonly events: EventFeed;
}): SandboxOperations['followEvents'] => {
  const streams = new KeyedSemaphore(MOST_STREAMS_OF_TENANT);
  return (caller, { all, after }) => {
    const key = tenantKey(caller);
    if (!streams.acquire(key)) throw tooManyStreams('you have', MOST_STREAMS_OF_TENANT);
    let open = true;
    return {
      batches: (signal) => events.follow(all ? undefined : caller, after, signal),
      close: () => {
        if (!open) return;
        open = false;
        streams.release(key);
      },
    };
  };
};
