import type { EventBatch, EventRecord } from '../../model/event.ts';
import type { Tenant } from '../../model/tenant.ts';

/** Keeps what happens, in one order for all replicas. */
export interface EventLog {
  /**
   * Tells an event to all who follow, within a second: never throws, never waits; while it can't be
   * told it waits, the oldest of 10,000 go. What several replicas tell under one `key` at about the
   * same time is there once. `told`, with the number it has on each replica: it is there.
   */
  publishEvent(event: EventRecord, key: string, told?: (id: number) => void): void;
  /**
   * A tenant's events, or everybody's, after the one with the number `after`, or from now on, where
   * the first batch is empty and says where that `begins`, if it is known; ends at an abort. Reads
   * no faster than it is asked. Of the last 8,192 of all tenants none lacks; where some do they are
   * `missed`, said once. While the place that keeps them is out of reach there are none.
   */
  followEvents(
    owner: Tenant | undefined,
    after: string | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<EventBatch, void, undefined>;
}
