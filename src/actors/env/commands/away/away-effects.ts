import { placeOf, type CopyMirror } from '../../copy-mirror.ts';
import type { EnvMirror } from '../../../runtime/record-mirror.ts';
import { MemberFailure, type AwayMembers } from '../../member-effects.ts';
import type { CopyPlace, EnvCopies, ShownPool } from '../../../../contracts/fleet/env-copies.ts';
import {
  askedOf,
  copiedConfigOf,
  copiedIn,
  copyWordOf,
  isCopyOf,
  isWordOf,
} from '../../../../model/envs/env-copy.ts';
import type { EnvMember, EnvRecord } from '../../../../model/envs/env.ts';
import { Refusal } from '../../../../model/refusals.ts';
import { withoutMember } from '../member-pool.ts';

export interface AwayDeps {
  readonly copies: EnvCopies;
  readonly mirror: CopyMirror;
  readonly envs: EnvMirror;
}

/** Each call is by name and repeatable, so that a broken link leaves no duplicates. */
export const awayEffects = (deps: AwayDeps): AwayMembers['carryOut'] => {
  const { copies, mirror, envs } = deps;
  return async (seen, name, intent) => {
    await envs.refresh(`${seen.owner.namespace}/${seen.name}`);
    const env = envs.get(seen.uid);
    const member = env?.members.find((each) => each.name === name);
    if (!env || !member) return;
    const place = placeOf(env, member.clusterId);
    try {
      if (intent.type === 'forget') await forget(deps, env, member);
      else if (intent.type === 'end-pool') await copies.endMember(place, name, intent.force);
      else await bringAbout(deps, env, member);
    } catch (error) {
      throw asFailure(error);
    } finally {
      await mirror.look(env.uid, member.clusterId).catch(() => undefined);
    }
  };
};

/**
 * Returns the pool if this created it. Refuses with ALREADY_EXISTS if the cluster has an unrelated
 * env or pool of the name.
 */
export const bringAbout = async (
  deps: Pick<AwayDeps, 'copies' | 'envs'>,
  env: EnvRecord,
  member: EnvMember,
): Promise<ShownPool | undefined> => {
  const { copies } = deps;
  const place = placeOf(env, member.clusterId);
  const { name } = member;
  const replicas = askedOf(member);
  const config = copiedConfigOf(member);
  const copy = await theCopy(copies, place, env);
  if (!isWordOf(copy, env)) await copies.replace(place, copyWordOf(env));
  const copied = copiedIn(copy, name);
  const pool = copied
    ? undefined
    : await unlessOurs(copies.addMember(place, { name, replicas, config }), async () => {
        const now = await copies.read(place);
        return now !== undefined && isCopyOf(now, env) && copiedIn(now, name) !== undefined;
      });
  if (copied) await copies.changeMember(place, name, { config });
  if (copied && copied.desired > replicas) await lowerToAsked(deps, env, member);
  const group = copied ? copied.config.scalingGroup : name;
  if (group !== undefined) await copies.endGroup(place, group);
  return pool;
};

/**
 * Sizes are recorded in the env before their cluster gets them, so this reads the env after the
 * copy.
 */
const lowerToAsked = async (
  { copies, envs }: Pick<AwayDeps, 'copies' | 'envs'>,
  env: EnvRecord,
  { name, clusterId }: EnvMember,
): Promise<void> => {
  const place = placeOf(env, clusterId);
  const copy = await copies.read(place);
  await envs.refresh(`${env.owner.namespace}/${env.name}`);
  const member = envs.get(env.uid)?.members.find((each) => each.name === name);
  const replicas = member && askedOf(member);
  const copied = copy && copiedIn(copy, name);
  if (replicas !== undefined && copied && copied.desired > replicas)
    await copies.changeMember(place, name, { replicas, tag: copy.tag });
};

const theCopy = async (copies: EnvCopies, place: CopyPlace, env: EnvRecord) => {
  const before = await copies.read(place);
  if (!before) await unlessOurs(copies.create(place, copyWordOf(env)), async () => true);
  const copy = before ?? (await copies.read(place));
  if (copy && isCopyOf(copy, env)) return copy;
  throw new Refusal(
    'ALREADY_EXISTS',
    `the cluster ${place.clusterId} has another env of this name`,
  );
};

/**
 * Undefined if our object exists already: a request and the env's leader may overtake each other.
 */
const unlessOurs = async <T>(
  work: Promise<T>,
  isOurs: () => Promise<boolean>,
): Promise<T | undefined> => {
  try {
    return await work;
  } catch (error) {
    if (error instanceof Refusal && error.code === 'ALREADY_EXISTS' && (await isOurs()))
      return undefined;
    throw error;
  }
};

/** The copy goes with the last member there. */
const forget = async (deps: AwayDeps, env: EnvRecord, member: EnvMember): Promise<void> => {
  if (!(await leaveCopy(deps, env, member))) return;
  await deps.envs.change(env.uid, (current) =>
    current.deleting !== false ||
    current.members.some(({ name, deleting }) => name === member.name && deleting !== false)
      ? withoutMember(current, member)
      : current,
  );
};

export const leaveCopy = async (
  { copies }: Pick<AwayDeps, 'copies'>,
  env: EnvRecord,
  { name, clusterId }: EnvMember,
): Promise<boolean> => {
  if (copies.isRemoved(clusterId)) return true;
  const place = placeOf(env, clusterId);
  const copy = await copies.read(place);
  if (!copy || !isCopyOf(copy, env)) return true;
  if (copiedIn(copy, name)) return false;
  const stay = env.members.some(
    (each) => each.name !== name && each.clusterId === clusterId && each.deleting === false,
  );
  if (copy.members.length === 0 && (env.deleting !== false || !stay)) await copies.end(place);
  return true;
};

const asFailure = (error: unknown): unknown => {
  if (!(error instanceof Refusal)) return error;
  switch (error.code) {
    case 'QUOTA_EXCEEDED':
      return new MemberFailure('QuotaExceeded', error.message);
    case 'ALREADY_EXISTS':
      return new MemberFailure('NameTaken', error.message);
    case 'UNAVAILABLE':
    case 'CLUSTER_UNAVAILABLE':
    case 'CONFLICT':
    case 'PRECONDITION_FAILED':
      return error;
    default:
      return new MemberFailure('NotRendered', error.message);
  }
};
