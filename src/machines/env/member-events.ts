import type { EnvMember, EnvRecord } from '../../model/envs/env.ts';
import type { AwayPool } from '../../model/envs/env-copy.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';

/**
 * Describes what is known of a member: what its env says of it, and its pool. Without either there
 * is no member.
 */
export interface MemberFact {
  /** Undefined: it is no more. */
  readonly env: EnvRecord | undefined;
  /** As the env lists it. */
  readonly member: EnvMember | undefined;
  /** The pool of its name that names the env. */
  readonly pool: PoolRecord | undefined;
  /** Until when it can't grow; 0: it can. */
  readonly saturatedUntil: number;
  /** How its pool on another cluster stands; absent: it is of this one, or not known yet. */
  readonly away?: AwayFact;
}

export interface AwayFact {
  /** The cluster answered a moment ago. Where it did not, `pool` is what it said last. */
  readonly reachable: boolean;
  /** Undefined: there is none. */
  readonly pool: AwayPool | undefined;
  /** The cluster was removed from the fleet, and what it has with it. */
  readonly removed?: true;
}

/** `localCluster`: the one whose pools are records of this daemon. */
export interface MemberInput {
  readonly fact: MemberFact;
  readonly localCluster: string;
  readonly now: number;
}

export type MemberEvent =
  | { readonly type: 'FACT'; readonly fact: MemberFact; readonly now: number }
  | { readonly type: 'LEAD'; readonly now: number }
  | { readonly type: 'FOLLOW' }
  /**
   * Says that what the last intent asked for is done, or was not to be done any more; facts tell
   * what came of it.
   */
  | { readonly type: 'CARRIED_OUT'; readonly now: number }
  /** `why` is for people, and tells nothing secret. */
  | {
      readonly type: 'NOT_CARRIED_OUT';
      readonly why: string;
      readonly reason: MemberTrouble;
      readonly now: number;
    }
  | { readonly type: 'DEADLINE'; readonly now: number };

const MEMBER_TROUBLES = ['QuotaExceeded', 'NameTaken', 'NotRendered', 'Unavailable'] as const;
export type MemberTrouble = (typeof MEMBER_TROUBLES)[number];

/** One at a time; the next comes once the last was answered. */
export type MemberIntent =
  | { readonly type: 'make-pool' }
  /** Have the pool be as the env asks. */
  | { readonly type: 'settle-pool' }
  | { readonly type: 'end-pool'; readonly force: boolean }
  /** Its pool is gone: the env lists it no more, nor its group where nobody else is in it. */
  | { readonly type: 'forget' };

export interface MemberContext {
  readonly fact: MemberFact;
  readonly localCluster: string;
  readonly now: number;
  readonly trouble:
    | { readonly reason: MemberTrouble; readonly why: string; readonly times: number }
    | undefined;
  readonly troubledAt: number;
  /** The last intent that was carried out. */
  readonly done: { readonly type: MemberIntent['type']; readonly at: number } | undefined;
  /** The intent that is not answered yet. */
  readonly asked: MemberIntent['type'] | undefined;
  readonly deadline: number | undefined;
}
