import type { EnvMirror } from '../../runtime/record-mirror.ts';
import { MemberFailure, type MemberEffects } from '../member-effects.ts';
import type { Supervisor } from '../../sandbox/supervisor.ts';
import { RecordConflict } from '../../../contracts/sandbox-driver.ts';
import { memberSourceOf } from '../../../model/envs/env-rendering.ts';
import type { EnvRecord } from '../../../model/envs/env.ts';
import type { PoolRecord } from '../../../model/pools/pool.ts';
import { Refusal } from '../../../model/refusals.ts';
import { envFieldOf } from './envs.ts';
import { makePool, type MakePoolDeps } from '../../pool/commands/make-pool.ts';
import { memberDraft, reconcileMemberPool, withoutMember } from './member-pool.ts';
import type { WriteRenewedDeps } from '../../pool/commands/pool-renewal.ts';
import { renderSource, type PoolRenderingDeps } from '../../pool/commands/pool-rendering.ts';

export interface MemberEffectsDeps extends WriteRenewedDeps, MakePoolDeps, PoolRenderingDeps {
  readonly supervisor: Supervisor;
  readonly envs: EnvMirror;
  readonly newUid: () => string;
  readonly removeEnv: (env: EnvRecord) => Promise<void>;
}

/** Reads the stored env before irreversible effects, because the mirror may be behind. */
export const memberEffects = (deps: MemberEffectsDeps): MemberEffects => ({
  'make-pool': async (seen, name) => {
    const { env, member } = await asStored(deps, seen, name);
    if (!env || !member || member.deleting !== false) return undefined;
    const standing = await ownPool(deps, env, name);
    if (standing) return standing;
    try {
      const rendered = await renderSource(
        { ...deps, fieldOf: envFieldOf },
        memberSourceOf(env, member.config),
        env.owner.namespace,
      );
      return await makePool(deps, memberDraft(deps, env, { member, rendered }), {
        prepare: async () => undefined,
        undo: async () => undefined,
      });
    } catch (error) {
      const other =
        error instanceof Refusal && error.code === 'ALREADY_EXISTS'
          ? await ownPool(deps, env, name)
          : undefined;
      if (other) return other;
      throw asFailure(error);
    }
  },
  // Needs no read: a newer env causes another call.
  'settle-pool': (env, name) => reconcileMemberPool(deps, env, name),
  'end-pool': async (pool, force) => {
    const { env, member } = await asStored(
      deps,
      { uid: pool.env?.uid ?? '', name: pool.env?.name ?? '', owner: pool.owner },
      pool.name,
    );
    // the mirror was behind
    if (env && env.deleting === false && member && member.deleting === false) return pool;
    return await deps.supervisor.pools.change(pool.uid, (current) => {
      const deleting =
        force || current.deleting === 'force' ? ('force' as const) : ('keep-running' as const);
      return current.deleting === deleting ? current : { ...current, deleting };
    });
  },
  forget: async (env, name) => {
    const { env: stored, member } = await asStored(deps, env, name);
    if (!stored || !member || (await ownPool(deps, stored, name))) return undefined;
    await deps.envs.change(env.uid, (current) =>
      current.deleting !== false ||
      current.members.some((each) => each.name === name && each.deleting !== false)
        ? withoutMember(current, member)
        : current,
    );
    return undefined;
  },
  'remove-env': deps.removeEnv,
});

const asStored = async (
  { envs }: Pick<MemberEffectsDeps, 'envs'>,
  { uid, name, owner }: Pick<EnvRecord, 'uid' | 'name' | 'owner'>,
  memberName: string,
) => {
  await envs.refresh(`${owner.namespace}/${name}`);
  const env = envs.get(uid);
  return { env, member: env?.members.find((each) => each.name === memberName) };
};

/** Reads uncached. */
const ownPool = async (
  { supervisor }: Pick<MemberEffectsDeps, 'supervisor'>,
  env: EnvRecord,
  name: string,
): Promise<PoolRecord | undefined> => {
  await supervisor.pools.refresh(env.owner.namespace, name);
  return supervisor.pools.ofMember(env, name)?.record;
};

const asFailure = (error: unknown): unknown => {
  if (error instanceof RecordConflict || !(error instanceof Refusal)) return error;
  switch (error.code) {
    case 'QUOTA_EXCEEDED':
      return new MemberFailure(
        'QuotaExceeded',
        'the quota of pools, replicas, cpu or memory is used up',
      );
    case 'ALREADY_EXISTS':
      return new MemberFailure(
        'NameTaken',
        'a pool of this name exists that does not belong to the env',
      );
    case 'UNAVAILABLE':
      return error;
    default:
      return new MemberFailure('NotRendered', error.message);
  }
};
