import type { EventRecord } from '../model/event.ts';
import type { InstanceId } from '../model/identifiers.ts';
import type { FinishedSandbox } from '../model/sandbox.ts';
import type { Tenant } from '../model/tenant.ts';

/** Undefined fields match all. `since` is a moment in ms: finished at or after it. */
export interface FinishedFilter {
  readonly owner?: Tenant;
  readonly namespace?: string;
  readonly team?: string;
  readonly user?: string;
  readonly poolName?: string;
  readonly since?: number;
}

/** Finished sandboxes, and what happened to claimed ones. Kept through retention, then forgotten in small steps. */
export interface History {
  /** Durable when it resolves; idempotent by id: the first record of an id stands. */
  record(finished: FinishedSandbox): Promise<void>;
  /** One by its id; undefined where there is none, or none any more. */
  find(id: InstanceId): Promise<FinishedSandbox | undefined>;
  /** Durable when it resolves. Of each sandbox the newest 50 are kept, for as long as its finished record. An id that is known already counts as done. */
  recordEvents(events: readonly { readonly id: number; readonly event: EventRecord }[]): Promise<void>;
  /** By id, the smallest first. */
  eventsOf(sandboxId: InstanceId): Promise<readonly EventRecord[]>;
  /** Newest claim first, the higher id first among equals; `total` is exact. */
  list(filter: FinishedFilter, page: { readonly offset: number; readonly limit: number }): Promise<{ readonly items: readonly FinishedSandbox[]; readonly total: number }>;
}
