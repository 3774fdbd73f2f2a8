import type { TroubleReason } from '../../model/envs/scaling-decision.ts';

/** Instances that a member should have and has not, and that do not come. */
export interface Trouble {
  readonly reason: TroubleReason;
  readonly count: number;
  /**
   * When it last showed (ms). What showed before the member was last scaled up says nothing of
   * that.
   */
  readonly since: number;
  /** Until when nothing is tried anyhow, as a breaker's pause. */
  readonly until?: number;
}

/** The most that a pool on another cluster was asked to have; no count of it is higher. */
export interface AskedSize {
  readonly most: number;
  /** Whether the rest was seen after that was asked. */
  readonly current: boolean;
}

/** How a member stands, as one replica sees it now. */
export interface MemberObservation {
  readonly name: string;
  /** Whose quota it has; absent: this one's. */
  readonly cluster?: string;
  /** Absent: its pool's own record says how many it has. */
  readonly asked?: AskedSize;
  /** Its pool's `replicas`. */
  readonly desired: number;
  readonly running: number;
  /** Ready to claim. */
  readonly idle: number;
  readonly unavailable: number;
  /** Idle ones whose birth is at least the protection window ago. */
  readonly settled: number;
  /** Claims that wait, and principals that were refused lately and not served since. */
  readonly pending: number;
  /** Claims of `pending` that wait now; absent: none. */
  readonly waiting?: number;
  /** When a claim last came, whatever became of it (ms); 0: none is known. */
  readonly claimedAt: number;
  /** How many more the owner's quota allows; absent: no limit. */
  readonly quota?: number;
  /** Where it is not, the rest is what was seen last, and its size stays. */
  readonly reachable: boolean;
  readonly trouble?: Trouble;
  /** The last decision that was carried out on its pool; 0: none. */
  readonly decided: number;
}

/** A member's own share of the rules. */
export interface MemberRules {
  readonly name: string;
  readonly minReplicas: number;
  readonly maxReplicas: number;
  /** The higher number goes first. */
  readonly scaleUpPriority: number;
  readonly scaleDownPriority: number;
}
