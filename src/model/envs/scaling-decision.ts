export const TROUBLE_REASONS = ['quota', 'unschedulable', 'start failures'] as const;
export type TroubleReason = (typeof TROUBLE_REASONS)[number];

export const SCALING_CAUSES = ['demand', 'surplus', 'limits', 'failure'] as const;

/**
 * Limits growth until a change other than time. `message` contains no number that changes with
 * time.
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
 * Absolute sizes, each only for a pool that still has `from`. Without changes, it explains once per
 * reason why the group does not grow.
 */
export interface ScalingDecision {
  /** Higher than all earlier decisions; a time in ms if clocks are in order. */
  readonly id: number;
  readonly at: number;
  readonly cause: (typeof SCALING_CAUSES)[number];
  readonly changes: readonly ScalingChange[];
  readonly seen: GroupCounts;
  /** Before limits: running, pending and the buffer. */
  readonly wanted: number;
  readonly reason: string;
  readonly limitedBy: readonly string[];
  /** Those limits that time does not end. */
  readonly limits?: readonly GrowthLimit[];
}

export interface ScalingChange {
  readonly member: string;
  readonly from: number;
  readonly to: number;
}

/** `starting`: missing instances that are expected to start. */
export interface GroupCounts {
  readonly desired: number;
  readonly running: number;
  readonly idle: number;
  readonly starting: number;
  readonly pending: number;
}

/**
 * `done`: the pool has the size, now or before. `overtaken`: another size or a later decision was
 * in place. `refused`: the pool may not grow.
 */
export type ChangeOutcome =
  | { readonly kind: 'done' | 'overtaken' }
  | { readonly kind: 'refused'; readonly reason: TroubleReason };

export interface CompletedDecision extends ScalingDecision {
  readonly outcomes: Readonly<Record<string, ChangeOutcome>>;
}

export const MOST_DECISIONS = 100;
