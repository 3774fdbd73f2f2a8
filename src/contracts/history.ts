import type { EventRecord } from '../model/event.ts';
import type { InstanceId } from '../model/identifiers.ts';
import type { FinishedSandbox } from '../model/sandbox.ts';
import type { CompletedDecision } from '../model/envs/scaling-decision.ts';
import type { Tenant } from '../model/tenant.ts';

/** Undefined fields match all. `since` in ms: finished at or after it. */
export interface FinishedFilter {
  readonly owner?: Tenant;
  readonly namespace?: string;
  readonly team?: string;
  readonly user?: string;
  readonly poolName?: string;
  readonly since?: number;
}

export const contradicts = ({ owner, namespace, team, user }: FinishedFilter): boolean =>
  owner !== undefined &&
  ((namespace ?? owner.namespace) !== owner.namespace ||
    (team ?? owner.team) !== owner.team ||
    (user ?? owner.user) !== owner.user);

export interface GroupKey {
  readonly envUid: string;
  readonly group: string;
}

/** Kept for the retention time, then deleted in small steps. */
export interface History {
  /** Durable when it resolves. Idempotent by id: the first record of an id stands. */
  record(finished: FinishedSandbox): Promise<void>;
  /** Also undefined if it is no longer kept. */
  find(id: InstanceId): Promise<FinishedSandbox | undefined>;
  /**
   * Durable when it resolves; a known id counts as done. Keeps the newest 50 events of each sandbox
   * and of each pool name. Pools' events outlive the pool by the retention time. Per owner, keeps
   * events of the 100 pools with the latest events.
   */
  recordEvents(
    events: readonly { readonly id: number; readonly event: EventRecord }[],
  ): Promise<void>;
  eventsOf(sandboxId: InstanceId): Promise<readonly EventRecord[]>;
  /** All pools that have or had this name, under any owner; ids ascending. */
  eventsOfPool(namespace: string, name: string): Promise<readonly EventRecord[]>;
  /**
   * Durable when it resolves. Keeps the newest 100 of each group as long as its env, or for the
   * retention time. Replaces a decision with the same id.
   */
  recordDecision(of: GroupKey, decision: CompletedDecision): Promise<void>;
  /** Newest first. */
  decisionsOf(of: GroupKey): Promise<readonly CompletedDecision[]>;
  countByNamespace(): Promise<ReadonlyMap<string, number>>;
  /** Newest claim first, then by descending id; `total` is exact. */
  list(
    filter: FinishedFilter,
    page: { readonly offset: number; readonly limit: number },
  ): Promise<{ readonly items: readonly FinishedSandbox[]; readonly total: number }>;
}
