import type { EnvMember, EnvRecord } from '../../model/envs/env.ts';
import type { AwayPool } from '../../model/envs/env-copy.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';

export interface MemberFact {
  readonly env: EnvRecord | undefined;
  readonly member: EnvMember | undefined;
  readonly pool: PoolRecord | undefined;
  /** 0 if it can grow. */
  readonly saturatedUntil: number;
  /** Absent for a local pool, or before it is known. */
  readonly away?: AwayFact;
}

export interface AwayFact {
  /** If false, `pool` is the last answer. */
  readonly reachable: boolean;
  readonly pool: AwayPool | undefined;
  /** Removed from the fleet, together with its pools. */
  readonly removed?: true;
}

export interface MemberInput {
  readonly fact: MemberFact;
  readonly localCluster: string;
  readonly now: number;
}

export type MemberEvent =
  | { readonly type: 'FACT'; readonly fact: MemberFact; readonly now: number }
  | { readonly type: 'LEAD'; readonly now: number }
  | { readonly type: 'FOLLOW' }
  /** Facts show the result. */
  | { readonly type: 'CARRIED_OUT'; readonly now: number }
  /** Shown to people: contains no secrets. */
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
  | { readonly type: 'settle-pool' }
  | { readonly type: 'end-pool'; readonly force: boolean }
  | { readonly type: 'forget' };

export interface MemberContext {
  readonly fact: MemberFact;
  readonly localCluster: string;
  readonly now: number;
  readonly trouble:
    | { readonly reason: MemberTrouble; readonly why: string; readonly times: number }
    | undefined;
  readonly troubledAt: number;
  readonly done: { readonly type: MemberIntent['type']; readonly at: number } | undefined;
  readonly asked: MemberIntent['type'] | undefined;
  readonly deadline: number | undefined;
}
