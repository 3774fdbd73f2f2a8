import type { EventBatch, EventRecord } from '../../model/event.ts';
import type { Tenant } from '../../model/tenant.ts';

/** The events of all replicas, in one order. */
export interface EventLog {
  /**
   * Publishes an event to all followers within a second; never throws or waits. During an outage it
   * buffers 10,000 events and drops the oldest. Events that several replicas publish under one
   * `key` at about the same time appear once. Calls `told` once the event is stored, with its
   * number, which is the same on each replica.
   */
  publishEvent(event: EventRecord, key: string, told?: (id: number) => void): void;
  /**
   * Follows a tenant's events, or all events, after number `after`, or from now on. In the latter
   * case the first batch is empty, and `begins` gives its position if known. Ends at an abort.
   * Reads no faster than its consumer. The last 8,192 events of all tenants are complete; a gap is
   * reported once as `missed`. Yields no events during an outage of the store.
   */
  followEvents(
    owner: Tenant | undefined,
    after: string | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<EventBatch, void, undefined>;
}
