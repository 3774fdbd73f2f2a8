import type { EventFeed } from '../../runtime/event-feed.ts';
import { tooManyStreams } from '../../../model/limit-refusals.ts';
import { tenantKey } from '../../../model/tenant.ts';
import type { SandboxOperations } from './sandbox-operations.ts';
import { Permits } from '../../../lib/permits.ts';

const MOST_STREAMS_OF_TENANT = 16;

/**
 * The caller's sandboxes and pools, or everybody's (operation `GET /events`). At most 16 streams of
 * one tenant.
 */
export const followEvents = ({
  events,
}: {
  readonly events: EventFeed;
}): SandboxOperations['followEvents'] => {
  const streams = new Permits({ tenant: MOST_STREAMS_OF_TENANT });
  return (caller, { all, after }) => {
    const close = streams.take({ tenant: tenantKey(caller) }, (_, most) =>
      tooManyStreams('you have', most),
    );
    return {
      batches: (signal) => events.follow(all ? undefined : caller, after, signal),
      close,
    };
  };
};
