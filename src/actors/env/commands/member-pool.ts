import type { PoolSnapshot } from '../../pool/pool-snapshot.ts';
import type { Clock } from '../../../contracts/clock.ts';
import type { EnvMember, EnvRecord } from '../../../model/envs/env.ts';
import { withSpec, matchesSpec, memberPoolPart } from '../../../model/envs/env-rendering.ts';
import { CLOSED_BREAKER, type PoolRecord } from '../../../model/pools/pool.ts';
import type { RenderedPool } from '../../../model/pools/render-pool.ts';
import type { PoolDraft } from '../../pool/commands/make-pool.ts';
import { writeRenewed, type WriteRenewedDeps } from '../../pool/commands/pool-renewal.ts';

export const memberDraft = (
  { newUid, clock }: { readonly newUid: () => string; readonly clock: Clock },
  env: EnvRecord,
  { member, rendered }: { readonly member: EnvMember; readonly rendered: RenderedPool },
): PoolDraft => ({
  uid: newUid(),
  name: member.name,
  owner: env.owner,
  createdAt: clock.now(),
  env: { uid: env.uid, name: env.name },
  replicas: member.replicas,
  ...memberPoolPart(env, member),
  ...rendered,
  breaker: CLOSED_BREAKER,
  deleting: false,
});

/** Also removes its group if that is empty. */
export const withoutMember = (
  env: EnvRecord,
  { name, createdAt }: Pick<EnvMember, 'name' | 'createdAt'>,
): EnvRecord => {
  const gone = env.members.find((member) => member.name === name && member.createdAt === createdAt);
  if (!gone) return env;
  const members = env.members.filter((member) => member !== gone);
  const { scalingGroup } = gone.config;
  if (
    scalingGroup === undefined ||
    members.some(({ config }) => config.scalingGroup === scalingGroup)
  )
    return { ...env, members };
  const { [scalingGroup]: _gone, ...scaling } = env.scaling;
  return {
    ...env,
    members,
    groups: env.groups.filter((group) => group.name !== scalingGroup),
    scaling,
  };
};

/** Another replica may have just created the pool. */
export const memberPool = async (
  { supervisor }: Pick<WriteRenewedDeps, 'supervisor'>,
  env: Pick<EnvRecord, 'uid' | 'owner'>,
  name: string,
): Promise<PoolSnapshot | undefined> => {
  const { pools } = supervisor;
  if (pools.index.uidOf(env.owner.namespace, name) === undefined)
    await pools.lookUp(env.owner.namespace, name);
  return pools.ofMember(env, name);
};

/**
 * Undefined without a pool. Keeps the definition if the new one can't be rendered or exceeds the
 * owner's quota.
 */
export const reconcileMemberPool = async (
  deps: WriteRenewedDeps,
  env: EnvRecord,
  name: string,
): Promise<PoolRecord | undefined> => {
  const member = env.members.find((each) => each.name === name);
  const uid = deps.supervisor.pools.index.uidOf(env.owner.namespace, name);
  if (!member || uid === undefined) return undefined;
  const part = memberPoolPart(env, member);
  return await writeRenewed(deps, { uid, owner: env.owner }, (current) =>
    current.env?.uid !== env.uid || current.deleting !== false || matchesSpec(current, part)
      ? undefined
      : withSpec(current, part),
  );
};
