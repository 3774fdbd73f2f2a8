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

/** Finished sandboxes. Kept through retention, then forgotten in small steps. */
export interface History {
  /** Durable when it resolves; idempotent by id: the first record of an id stands. */
  record(finished: FinishedSandbox): Promise<void>;
  /** One by its id; undefined where there is none, or none any more. */
  find(id: InstanceId): Promise<FinishedSandbox | undefined>;
  /** Newest claim first, the higher id first among equals; `total` is exact. */
  list(filter: FinishedFilter, page: { readonly offset: number; readonly limit: number }): Promise<{ readonly items: readonly FinishedSandbox[]; readonly total: number }>;
}
