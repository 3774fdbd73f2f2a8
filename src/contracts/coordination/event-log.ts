import type { EventBatch, EventRecord } from '../../model/event.ts';
import type { Tenant } from '../../model/tenant.ts';

export interface EventLog {
  /**
   * Reaches all followers within a second; never throws or waits. An outage drops the oldest beyond
   * 10,000 events. Events that replicas publish under one `key` at about the same time appear once.
   * `told` gets the stored event's number, the same on each replica.
   */
  publishEvent(event: EventRecord, key: string, told?: (id: number) => void): void;
  /**
   * A tenant's events, or all, after number `after`, or from now on: then the first batch is empty,
   * and `begins` gives its position if known. Reads no faster than its consumer. The last 8,192
   * events of all tenants are complete; a gap is reported once as `missed`. Yields nothing during
   * an outage.
   */
  followEvents(
    owner: Tenant | undefined,
    after: string | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<EventBatch, void, undefined>;
}
