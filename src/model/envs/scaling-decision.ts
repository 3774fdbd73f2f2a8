/**
 * Why a member's instances can't start: none of the owner's quota left, no place for them, or
 * starts that fail.
 */
export const TROUBLE_REASONS = ['quota', 'unschedulable', 'start failures'] as const;
export type TroubleReason = (typeof TROUBLE_REASONS)[number];

export const SCALING_CAUSES = ['demand', 'surplus', 'limits', 'failure'] as const;

/**
 * Why a group does not grow as demand asks, until something else than time changes it. `reason` is
 * in CamelCase, as of a condition; `message` has no number that time moves.
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
 * Describes what an autoscaling group made up its mind to do: absolute sizes, each for a pool that
 * still has `from`. Without changes it says why the group does not grow, once for each reason.
 */
export interface ScalingDecision {
  /**
   * Higher than those of all decisions before it that any of its members knows; a moment (ms)
   * wherever clocks are in order.
   */
  readonly id: number;
  readonly at: number;
  readonly cause: (typeof SCALING_CAUSES)[number];
  readonly changes: readonly ScalingChange[];
  readonly seen: GroupCounts;
  /** Says what there should be by demand: running, pending and the buffer; limits not regarded. */
  readonly wanted: number;
  readonly reason: string;
  /** Why it is not more. */
  readonly limitedBy: readonly string[];
  /** Reasons among these that only something else than time ends; absent: none. */
  readonly limits?: readonly GrowthLimit[];
}

export interface ScalingChange {
  readonly member: string;
  readonly from: number;
  readonly to: number;
}

/** Sums over the members; `starting`: what they should have and have not, as far as it comes. */
export interface GroupCounts {
  readonly desired: number;
  readonly running: number;
  readonly idle: number;
  readonly starting: number;
  readonly pending: number;
}

/**
 * Describes what became of one change. `done`: the pool has the size, now or before; `overtaken`:
 * it had another size than the change began from, or a later decision, and was left alone;
 * `refused`: it may not grow.
 */
export type ChangeOutcome =
  | { readonly kind: 'done' | 'overtaken' }
  | { readonly kind: 'refused'; readonly reason: TroubleReason };

/** A decision and, by member, what became of it. */
export interface CompletedDecision extends ScalingDecision {
  readonly outcomes: Readonly<Record<string, ChangeOutcome>>;
}

/** Decisions of a group that are kept. */
export const MOST_DECISIONS = 100;
