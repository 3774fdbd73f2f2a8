import type { AutoscalingGroup } from '../../model/envs/autoscaling-group.ts';
import type {
  ChangeOutcome,
  ScalingChange,
  ScalingDecision,
} from '../../model/envs/scaling-decision.ts';
import type { Outlook } from './evaluation.ts';
import type { GroupMemory } from './memory.ts';
import type { MemberObservation, MemberRules } from './observation.ts';

export interface GroupSpec {
  readonly group: AutoscalingGroup;
  readonly rules: readonly MemberRules[];
  readonly memory: GroupMemory;
}

export type GroupWords = Pick<GroupSpec, 'group' | 'rules'>;

export type GroupEvent =
  /** The last record is at least as new as the lease. */
  | { readonly type: 'LEAD'; readonly now: number }
  | { readonly type: 'FOLLOW' }
  | ({ readonly type: 'RECORD'; readonly now: number } & GroupSpec)
  /** Sent at the deadline of `resting`. */
  | {
      readonly type: 'OBSERVED';
      readonly members: readonly MemberObservation[];
      readonly now: number;
    }
  | { readonly type: 'WAKE'; readonly now: number }
  | { readonly type: 'STIR'; readonly now: number }
  | { readonly type: 'SAVED'; readonly id: number; readonly now: number }
  | { readonly type: 'SAVE_LOST'; readonly id: number; readonly now: number }
  | {
      readonly type: 'CHANGED';
      readonly id: number;
      readonly member: string;
      readonly outcome: ChangeOutcome;
      readonly now: number;
    }
  | { readonly type: 'DEADLINE'; readonly now: number };

export type GroupIntent =
  /**
   * Saves if the env's settings equal `by` and its last decision is `last`; repeated under one id
   * without an answer. The same write asks remote members for `asks`, if their sizes are unchanged.
   */
  | {
      readonly type: 'save';
      readonly id: number;
      readonly last: number;
      readonly memory: GroupMemory;
      readonly by: GroupWords;
      readonly asks: Asks;
    }
  /** Nobody waits for it. */
  | { readonly type: 'remember'; readonly last: number; readonly memory: GroupMemory }
  /** Conditional on `from`; the same write records the decision on the pool. */
  | {
      readonly type: 'apply';
      readonly id: number;
      readonly cause: ScalingDecision['cause'];
      readonly change: ScalingChange;
    }
  | {
      readonly type: 'tell';
      readonly decision: ScalingDecision;
      readonly outcomes: Readonly<Record<string, ChangeOutcome>>;
    };

/** The largest size that each remote member was asked to have. */
export type Asks = Readonly<Record<string, { readonly was: number; readonly is: number }>>;

export interface GroupContext extends GroupSpec {
  readonly saved: GroupMemory;
  readonly undecided: GroupMemory;
  readonly decidedBy: GroupWords;
  readonly asks: Asks;
  readonly leading: boolean;
  readonly outcomes: Readonly<Record<string, ChangeOutcome>>;
  readonly outlook: Outlook | undefined;
  readonly woken: boolean;
  readonly deadline: number | undefined;
}
