/**
 * Reason why a member's instances can't start: the owner's quota is used up, no node has capacity,
 * or starts fail.
 */
export const TROUBLE_REASONS = ['quota', 'unschedulable', 'start failures'] as const;
export type TroubleReason = (typeof TROUBLE_REASONS)[number];

export const SCALING_CAUSES = ['demand', 'surplus', 'limits', 'failure'] as const;

/**
 * Reason why a group does not grow with demand until a change other than time. `reason` is in
 * CamelCase, as in a condition; `message` contains no number that changes with time.
 */
export interface GrowthLimit {
  readonly reason:
    | 'MaxReplicasReached'
    | 'QuotaReached'
    | 'MemberUnreachable'
    | 'MemberUnschedulable'
    | 'MemberStartFailures';
  readonly message: string;
}

/**
 * A decision of an autoscaling group: absolute sizes, each only for a pool that still has `from`.
 * Without changes, it explains once per reason why the group does not grow.
 */
export interface ScalingDecision {
  /**
   * Higher than all earlier decisions that any member knows; a time in ms if clocks are in order.
   */
  readonly id: number;
  readonly at: number;
  readonly cause: (typeof SCALING_CAUSES)[number];
  readonly changes: readonly ScalingChange[];
  readonly seen: GroupCounts;
  /** Size by demand: running, pending and the buffer, before limits. */
  readonly wanted: number;
  readonly reason: string;
  /** Limits that reduce the size. */
  readonly limitedBy: readonly string[];
  /** Those limits that time does not end; absent if there are none. */
  readonly limits?: readonly GrowthLimit[];
}

export interface ScalingChange {
  readonly member: string;
  readonly from: number;
  readonly to: number;
}

/** Sums over the members; `starting`: instances still missing that are expected to start. */
export interface GroupCounts {
  readonly desired: number;
  readonly running: number;
  readonly idle: number;
  readonly starting: number;
  readonly pending: number;
}

/**
 * Outcome of one change. `done`: the pool has the size, now or before. `overtaken`: another size or
 * a later decision was in place, and nothing changed. `refused`: the pool may not grow.
 */
export type ChangeOutcome =
  | { readonly kind: 'done' | 'overtaken' }
  | { readonly kind: 'refused'; readonly reason: TroubleReason };

/** A decision with its outcome by member. */
export interface CompletedDecision extends ScalingDecision {
  readonly outcomes: Readonly<Record<string, ChangeOutcome>>;
}

/** Most kept decisions of a group. */
export const MOST_DECISIONS = 100;
