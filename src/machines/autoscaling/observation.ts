import type { TroubleReason } from '../../model/envs/scaling-decision.ts';

/** Missing instances of a member that fail to come. */
export interface Trouble {
  readonly reason: TroubleReason;
  readonly count: number;
  /** When that last showed, in ms. Failures from before the last scale-up say nothing about it. */
  readonly since: number;
  /** Until when no start is attempted, such as a breaker's pause. */
  readonly until?: number;
}

/** The largest size that a remote pool was asked to have; caps all its counts. */
export interface AskedSize {
  readonly most: number;
  /** Whether the other fields are newer than that request. */
  readonly current: boolean;
}

/** The state of a member, as one replica sees it. */
export interface MemberObservation {
  readonly name: string;
  /** The cluster of its quota; by default this one. */
  readonly cluster?: string;
  /** If absent, the pool's own record has its size. */
  readonly asked?: AskedSize;
  /** Its pool's `replicas`. */
  readonly desired: number;
  readonly running: number;
  /** Instances ready to claim. */
  readonly idle: number;
  readonly unavailable: number;
  /** Idle instances older than the protection window. */
  readonly settled: number;
  /** Waiting claims, and callers recently refused and not served since. */
  readonly pending: number;
  /** Waiting claims among `pending`; none if absent. */
  readonly waiting?: number;
  /** Time of the last claim in ms, with any outcome; 0 if unknown. */
  readonly claimedAt: number;
  /** Room within the owner's quota; unlimited if absent. */
  readonly quota?: number;
  /** Otherwise the other fields are the last known ones, and its size stays. */
  readonly reachable: boolean;
  readonly trouble?: Trouble;
  /** The last decision applied to its pool; 0 for none. */
  readonly decided: number;
}

/** A member's own rules. */
export interface MemberRules {
  readonly name: string;
  readonly minReplicas: number;
  readonly maxReplicas: number;
  /** Higher numbers come first. */
  readonly scaleUpPriority: number;
  readonly scaleDownPriority: number;
}
