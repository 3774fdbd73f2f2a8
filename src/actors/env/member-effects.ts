import type { AwayFact, MemberIntent, MemberTrouble } from '../../machines/env/member-events.ts';
import type { EnvMember, EnvRecord } from '../../model/envs/env.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';

export class MemberFailure extends Error {
  override readonly name = 'MemberFailure';
  readonly reason: MemberTrouble;

  constructor(reason: MemberTrouble, message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Resolves when the effect is durable or no longer needed. Rejects with MemberFailure if a user
 * should know.
 */
export interface MemberEffects {
  readonly 'make-pool': (env: EnvRecord, member: string) => Promise<PoolRecord | undefined>;
  readonly 'settle-pool': (env: EnvRecord, member: string) => Promise<PoolRecord | undefined>;
  readonly forget: (env: EnvRecord, member: string) => Promise<undefined>;
  readonly 'end-pool': (pool: PoolRecord, force: boolean) => Promise<PoolRecord | undefined>;
  readonly 'remove-env': (env: EnvRecord) => Promise<void>;
}

export interface AwayMembers {
  readonly factOf: (
    env: EnvRecord | undefined,
    member: EnvMember | undefined,
  ) => AwayFact | undefined;
  readonly carryOut: (env: EnvRecord, member: string, intent: MemberIntent) => Promise<void>;
}
