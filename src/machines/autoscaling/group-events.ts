import type { AutoscalingGroup } from '../../model/envs/autoscaling-group.ts';
import type {
  ChangeOutcome,
  ScalingChange,
  ScalingDecision,
} from '../../model/envs/scaling-decision.ts';
import type { Outlook } from './evaluation.ts';
import type { GroupMemory } from './memory.ts';
import type { MemberObservation, MemberRules } from './observation.ts';

/** The settings of a group in its env's record. */
export interface GroupSpec {
  readonly group: AutoscalingGroup;
  readonly rules: readonly MemberRules[];
  readonly memory: GroupMemory;
}

/** The owner's settings for a group and its members. */
export type GroupWords = Pick<GroupSpec, 'group' | 'rules'>;

export type GroupEvent =
  /** This replica now leads. The last record is no older than the lease. */
  | { readonly type: 'LEAD'; readonly now: number }
  | { readonly type: 'FOLLOW' }
  /** The record, from the store or a mirror. */
  | ({ readonly type: 'RECORD'; readonly now: number } & GroupSpec)
  /** The members' state; sent at the deadline of `resting`. */
  | {
      readonly type: 'OBSERVED';
      readonly members: readonly MemberObservation[];
      readonly now: number;
    }
  /** A claim waits or was refused, or a start failed: evaluate now. */
  | { readonly type: 'WAKE'; readonly now: number }
  /** A member changed: wakes a group at rest. */
  | { readonly type: 'STIR'; readonly now: number }
  | { readonly type: 'SAVED'; readonly id: number; readonly now: number }
  /** Another write came first, so the decision did not take effect. */
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
   * Save the decision in the env, if its settings still equal `by` and its last decision is `last`.
   * If the env already has this decision, it counts as saved. Repeated under the same id without an
   * answer. In the same write, members are asked for the sizes in `asks`, if their earlier sizes
   * are those that the decision was based on.
   */
  | {
      readonly type: 'save';
      readonly id: number;
      readonly last: number;
      readonly memory: GroupMemory;
      readonly by: GroupWords;
      readonly asks: Asks;
    }
  /**
   * Save the memory without a decision, by the settings of the last RECORD; nobody waits for it.
   */
  | { readonly type: 'remember'; readonly last: number; readonly memory: GroupMemory }
  /**
   * Resize the pool if it still has `from` and knows no later decision. The same write records the
   * decision on the pool.
   */
  | {
      readonly type: 'apply';
      readonly id: number;
      readonly cause: ScalingDecision['cause'];
      readonly change: ScalingChange;
    }
  /** Write to history; repeated after a takeover. */
  | {
      readonly type: 'tell';
      readonly decision: ScalingDecision;
      readonly outcomes: Readonly<Record<string, ChangeOutcome>>;
    };

/** The largest size that each remote member has been asked to have. */
export type Asks = Readonly<Record<string, { readonly was: number; readonly is: number }>>;

export interface GroupContext extends GroupSpec {
  /** The stored memory, as far as known. */
  readonly saved: GroupMemory;
  /** `memory` before its decision. */
  readonly undecided: GroupMemory;
  /** The settings that the decision was based on. */
  readonly decidedBy: GroupWords;
  /** Sizes requested with the decision in `memory`. */
  readonly asks: Asks;
  readonly leading: boolean;
  /** Outcomes by member of the decision in progress. */
  readonly outcomes: Readonly<Record<string, ChangeOutcome>>;
  readonly outlook: Outlook | undefined;
  /** An evaluation was requested during a decision. */
  readonly woken: boolean;
  readonly deadline: number | undefined;
}
