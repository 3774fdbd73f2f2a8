import type { TroubleReason } from '../../model/envs/scaling-decision.ts';

export interface Trouble {
  readonly reason: TroubleReason;
  readonly count: number;
  /** In ms. Failures from before the last scale-up say nothing about it. */
  readonly since: number;
  /** Until when no start is attempted, such as a breaker's pause. */
  readonly until?: number;
}

/** Caps all counts of a remote pool. */
export interface AskedSize {
  readonly most: number;
  /** Whether the other fields are newer than that request. */
  readonly current: boolean;
}

export interface MemberObservation {
  readonly name: string;
  /** The cluster of its quota; by default this one. */
  readonly cluster?: string;
  /** If absent, the pool's own record has its size. */
  readonly asked?: AskedSize;
  readonly desired: number;
  readonly running: number;
  readonly idle: number;
  readonly unavailable: number;
  /** Idle for longer than the protection window. */
  readonly settled: number;
  /** Includes callers recently refused and not served since. */
  readonly pending: number;
  readonly waiting?: number;
  /** In ms, with any outcome; 0 if unknown. */
  readonly claimedAt: number;
  /** Unlimited if absent. */
  readonly quota?: number;
  /** If false, the other fields are the last known ones. */
  readonly reachable: boolean;
  readonly trouble?: Trouble;
  /** 0 for none. */
  readonly decided: number;
}

export interface MemberRules {
  readonly name: string;
  readonly minReplicas: number;
  readonly maxReplicas: number;
  /** Higher numbers come first. */
  readonly scaleUpPriority: number;
  readonly scaleDownPriority: number;
}
