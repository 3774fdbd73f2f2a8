import type { AwayFact, MemberIntent, MemberTrouble } from '../../machines/env/member-events.ts';
import type { EnvMember, EnvRecord } from '../../model/envs/env.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';

/** Could not be done, and for what reason; the message is for people. */
export class MemberFailure extends Error {
  override readonly name = 'MemberFailure';
  readonly reason: MemberTrouble;

  constructor(reason: MemberTrouble, message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Carries out what members ask for. Resolves once it is durable, or is not to be done any more,
 * with the pool as it stands then. Rejects with MemberFailure for what a person should hear of.
 */
export interface MemberEffects {
  readonly 'make-pool': (env: EnvRecord, member: string) => Promise<PoolRecord | undefined>;
  readonly 'settle-pool': (env: EnvRecord, member: string) => Promise<PoolRecord | undefined>;
  readonly forget: (env: EnvRecord, member: string) => Promise<undefined>;
  readonly 'end-pool': (pool: PoolRecord, force: boolean) => Promise<PoolRecord | undefined>;
  readonly 'remove-env': (env: EnvRecord) => Promise<void>;
}

/** Members whose pools are on other clusters. */
export interface AwayMembers {
  /** Undefined: nothing is known of it. */
  readonly factOf: (
    env: EnvRecord | undefined,
    member: EnvMember | undefined,
  ) => AwayFact | undefined;
  /** As MemberEffects; what came of it shows in the fact. */
  readonly carryOut: (env: EnvRecord, member: string, intent: MemberIntent) => Promise<void>;
}
