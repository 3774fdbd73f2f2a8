import type { AutoscalingGroup } from '../../model/envs/autoscaling-group.ts';
import type {
  ChangeOutcome,
  ScalingChange,
  ScalingDecision,
} from '../../model/envs/scaling-decision.ts';
import type { Outlook } from './evaluation.ts';
import type { GroupMemory } from './memory.ts';
import type { MemberObservation, MemberRules } from './observation.ts';

/** Describes what the env's record says of a group. */
export interface GroupSpec {
  readonly group: AutoscalingGroup;
  readonly rules: readonly MemberRules[];
  readonly memory: GroupMemory;
}

/** Holds what the owner says of a group and its members. */
export type GroupWords = Pick<GroupSpec, 'group' | 'rules'>;

export type GroupEvent =
  /**
   * This replica decides from now on; the record as it was told last is no older than the lease.
   */
  | { readonly type: 'LEAD'; readonly now: number }
  | { readonly type: 'FOLLOW' }
  /** The record as it stands in the store, or as a mirror shows it. */
  | ({ readonly type: 'RECORD'; readonly now: number } & GroupSpec)
  /** How the members stand: told at the deadline of `resting`. */
  | {
      readonly type: 'OBSERVED';
      readonly members: readonly MemberObservation[];
      readonly now: number;
    }
  /** A claim waits or was refused, or a start failed: the group is looked at now. */
  | { readonly type: 'WAKE'; readonly now: number }
  /** Something of a member is not what it was: a group at rest is looked at again. */
  | { readonly type: 'STIR'; readonly now: number }
  | { readonly type: 'SAVED'; readonly id: number; readonly now: number }
  /** Somebody else's write came first: the decision was not made. */
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
   * To be saved in the env, as long as the group's own words there are those that it was decided
   * `by` and its last decision is `last`; where it is this one already, it is saved. Asked again
   * under the same id where no answer came. In the same write members have been asked for what
   * `asks` says, as long as what they were asked for is what it was decided upon.
   */
  | {
      readonly type: 'save';
      readonly id: number;
      readonly last: number;
      readonly memory: GroupMemory;
      readonly by: GroupWords;
      readonly asks: Asks;
    }
  /** To be saved by the words of the last RECORD where nothing was decided; nobody waits for it. */
  | { readonly type: 'remember'; readonly last: number; readonly memory: GroupMemory }
  /**
   * To be carried out where the pool still has `from` and knows no later decision, and noted there
   * in the same write.
   */
  | {
      readonly type: 'apply';
      readonly id: number;
      readonly cause: ScalingDecision['cause'];
      readonly change: ScalingChange;
    }
  /** To be kept in history; once more after a takeover. */
  | {
      readonly type: 'tell';
      readonly decision: ScalingDecision;
      readonly outcomes: Readonly<Record<string, ChangeOutcome>>;
    };

/** By member: the most that its pool on another cluster was asked to have, and is from now on. */
export type Asks = Readonly<Record<string, { readonly was: number; readonly is: number }>>;

export interface GroupContext extends GroupSpec {
  /** As the store has it, as far as is known. */
  readonly saved: GroupMemory;
  /** Says what `memory` was before the decision that it holds. */
  readonly undecided: GroupMemory;
  /** The words by which that decision was made. */
  readonly decidedBy: GroupWords;
  /** Asked for with the decision that `memory` holds. */
  readonly asks: Asks;
  readonly leading: boolean;
  /** By member, of the decision that is being carried out. */
  readonly outcomes: Readonly<Record<string, ChangeOutcome>>;
  readonly outlook: Outlook | undefined;
  /** Somebody asked to look while a decision was under way. */
  readonly woken: boolean;
  readonly deadline: number | undefined;
}
