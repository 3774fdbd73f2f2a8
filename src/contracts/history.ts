import type { EventRecord } from '../model/event.ts';
import type { InstanceId } from '../model/identifiers.ts';
import type { FinishedSandbox } from '../model/sandbox.ts';
import type { CompletedDecision } from '../model/envs/scaling-decision.ts';
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

/** Whether nothing can match: an owner together with parts that aren't the owner's. */
export const contradicts = ({ owner, namespace, team, user }: FinishedFilter): boolean =>
  owner !== undefined &&
  ((namespace ?? owner.namespace) !== owner.namespace ||
    (team ?? owner.team) !== owner.team ||
    (user ?? owner.user) !== owner.user);

/** An autoscaling group, whose name is unique in its env. */
export interface GroupKey {
  readonly envUid: string;
  readonly group: string;
}

/**
 * Finished sandboxes, what happened to claimed ones and to pools, and what autoscaling groups
 * decided. Kept through retention, then forgotten in small steps.
 */
export interface History {
  /** Durable when it resolves; idempotent by id: the first record of an id stands. */
  record(finished: FinishedSandbox): Promise<void>;
  /** One by its id; undefined where there is none, or none any more. */
  find(id: InstanceId): Promise<FinishedSandbox | undefined>;
  /**
   * Durable when it resolves. Of each sandbox the newest 50 are kept, for as long as its finished
   * record; of the pools of each name too, for as long as there is one and through retention after,
   * of each owner those of the 100 pools that something happened to last. An id that is known
   * already counts as done.
   */
  recordEvents(
    events: readonly { readonly id: number; readonly event: EventRecord }[],
  ): Promise<void>;
  /** By id, the smallest first. */
  eventsOf(sandboxId: InstanceId): Promise<readonly EventRecord[]>;
  /**
   * Events of the pools that have, or had, that name, whoever owned them; the smallest id first.
   */
  eventsOfPool(namespace: string, name: string): Promise<readonly EventRecord[]>;
  /**
   * Durable when it resolves. Of each group the newest 100 are kept, for as long as its env, or
   * through retention. One whose id is known takes its place.
   */
  recordDecision(of: GroupKey, decision: CompletedDecision): Promise<void>;
  /** The newest first. */
  decisionsOf(of: GroupKey): Promise<readonly CompletedDecision[]>;
  /** Counts what is kept, by namespace; a namespace without any is left out. */
  countByNamespace(): Promise<ReadonlyMap<string, number>>;
  /** Newest claim first, the higher id first among equals; `total` is exact. */
  list(
    filter: FinishedFilter,
    page: { readonly offset: number; readonly limit: number },
  ): Promise<{ readonly items: readonly FinishedSandbox[]; readonly total: number }>;
}
