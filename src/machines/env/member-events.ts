import type { EnvMember, EnvRecord } from '../../model/envs/env.ts';
import type { AwayPool } from '../../model/envs/env-copy.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';

/**
 * The known data of a member: its env's entry and its pool. Without either, the member does not
 * exist.
 */
export interface MemberFact {
  /** Undefined if it is deleted. */
  readonly env: EnvRecord | undefined;
  /** The env's entry. */
  readonly member: EnvMember | undefined;
  /** Its pool, which names the env. */
  readonly pool: PoolRecord | undefined;
  /** Until when it cannot grow; 0 if it can. */
  readonly saturatedUntil: number;
  /** The state of its remote pool; absent for a local pool, or before it is known. */
  readonly away?: AwayFact;
}

export interface AwayFact {
  /** Whether the cluster answered recently. If not, `pool` is its last answer. */
  readonly reachable: boolean;
  /** Undefined if there is none. */
  readonly pool: AwayPool | undefined;
  /** The cluster was removed from the fleet, together with its pools. */
  readonly removed?: true;
}

/** `localCluster`: the cluster with this daemon's pools. */
export interface MemberInput {
  readonly fact: MemberFact;
  readonly localCluster: string;
  readonly now: number;
}

export type MemberEvent =
  | { readonly type: 'FACT'; readonly fact: MemberFact; readonly now: number }
  | { readonly type: 'LEAD'; readonly now: number }
  | { readonly type: 'FOLLOW' }
  /** The last intent is done, or became unnecessary; facts show the result. */
  | { readonly type: 'CARRIED_OUT'; readonly now: number }
  /** `why` is shown to people and contains no secrets. */
  | {
      readonly type: 'NOT_CARRIED_OUT';
      readonly why: string;
      readonly reason: MemberTrouble;
      readonly now: number;
    }
  | { readonly type: 'DEADLINE'; readonly now: number };

const MEMBER_TROUBLES = ['QuotaExceeded', 'NameTaken', 'NotRendered', 'Unavailable'] as const;
export type MemberTrouble = (typeof MEMBER_TROUBLES)[number];

/** One at a time, each after the answer to the last. */
export type MemberIntent =
  | { readonly type: 'make-pool' }
  /** Change the pool to what the env wants. */
  | { readonly type: 'settle-pool' }
  | { readonly type: 'end-pool'; readonly force: boolean }
  /** Its pool is gone: remove it from the env, and its group if that has no other member. */
  | { readonly type: 'forget' };

export interface MemberContext {
  readonly fact: MemberFact;
  readonly localCluster: string;
  readonly now: number;
  readonly trouble:
    | { readonly reason: MemberTrouble; readonly why: string; readonly times: number }
    | undefined;
  readonly troubledAt: number;
  /** The last completed intent. */
  readonly done: { readonly type: MemberIntent['type']; readonly at: number } | undefined;
  /** The unanswered intent. */
  readonly asked: MemberIntent['type'] | undefined;
  readonly deadline: number | undefined;
}
