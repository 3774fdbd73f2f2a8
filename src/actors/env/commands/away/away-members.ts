import { placeOf } from '../../copy-mirror.ts';
import type { ShownPool } from '../../../../contracts/fleet/env-copies.ts';
import { copiedConfigOf, copiedIn, isCopyOf } from '../../../../model/envs/env-copy.ts';
import type { EnvMember, EnvRecord } from '../../../../model/envs/env.ts';
import { clusterUnavailable } from '../../../../model/fleet/cluster-refusals.ts';
import {
  clusterNotFound,
  invalidArgument,
  Refusal,
  unavailable,
  type FailedMember,
} from '../../../../model/refusals.ts';
import type { AwayPoolView } from '../../../views.ts';
import { withoutMember } from '../member-pool.ts';
import { endingMember } from '../find-env.ts';
import { bringAbout, leaveCopy, type AwayDeps } from './away-effects.ts';

/**
 * Requires an env without passwords, which never leave their cluster. Refuses with
 * CLUSTER_NOT_FOUND and CLUSTER_UNAVAILABLE.
 */
export const requireAway = (
  away: AwayDeps | undefined,
  env: EnvRecord,
  clusterId: string,
): AwayDeps => {
  if (!away?.copies.knows(clusterId)) throw clusterNotFound();
  if (env.overrides.imagePullSecretConfigured)
    throw invalidArgument(
      'clusterID',
      'must be this cluster, because the env has registry passwords, which are not sent to ' +
        'other clusters',
    );
  return requireLink(away, clusterId);
};

export const requireLink = (away: AwayDeps | undefined, clusterId: string): AwayDeps => {
  if (away?.copies.latencyOf(clusterId) === undefined)
    throw clusterUnavailable(clusterId, 'is not connected; try again');
  return away;
};

/** Removes the member if its cluster refuses. If it does not answer, the pool is created later. */
export const makeAwayPool = async (
  away: AwayDeps,
  env: EnvRecord,
  member: EnvMember,
): Promise<AwayPoolView> => {
  const { clusterId } = member;
  try {
    const shown = (await bringAbout(away, env, member)) ?? (await shownPool(away, env, member));
    if (!shown) throw unavailable('the pool of the member is not created yet');
    return { clusterId, shown };
  } catch (error) {
    if (isUnsure(error))
      throw unavailable(`the member was added; its pool is created when ${clusterId} answers`);
    await undo(away, env, member).catch(() => undefined);
    throw error;
  } finally {
    await away.mirror.look(env.uid, clusterId).catch(() => undefined);
  }
};

const isUnsure = (error: unknown): boolean =>
  !(error instanceof Refusal) ||
  error.code === 'CLUSTER_UNAVAILABLE' ||
  error.code === 'UNAVAILABLE' ||
  error.code === 'CONFLICT';

const undo = async (away: AwayDeps, env: EnvRecord, member: EnvMember): Promise<void> => {
  const isGone = await leaveCopy(away, away.envs.get(env.uid) ?? env, member).catch(() => false);
  await away.envs.change(env.uid, (current) =>
    isGone ? withoutMember(current, member) : endingMember(current, member.name, false),
  );
};

/** Refuses as its cluster does. */
export const changeAwayPool = async (
  away: AwayDeps,
  env: EnvRecord,
  { member, replicas }: { readonly member: EnvMember; readonly replicas: number | undefined },
): Promise<AwayPoolView> => {
  const { clusterId, name } = member;
  const { copies, mirror } = requireLink(away, clusterId);
  const place = placeOf(env, clusterId);
  const copy = await copies.read(place);
  if (!copy || !isCopyOf(copy, env) || !copiedIn(copy, name))
    throw unavailable('the pool of the member is not created yet; try again');
  const shown = await copies.changeMember(place, name, {
    config: copiedConfigOf(member),
    replicas,
  });
  await mirror.look(env.uid, clusterId).catch(() => undefined);
  return { clusterId, shown };
};

export const listAwayPools = async (
  away: AwayDeps | undefined,
  env: EnvRecord,
  localCluster: string,
): Promise<readonly AwayPoolView[]> => {
  if (!away) return [];
  const lists = await Promise.all(
    clustersOf(env, localCluster).map(async (clusterId) => {
      const pools = await away.copies.listPools(placeOf(env, clusterId)).catch(() => []);
      return pools
        .filter((pool) => env.members.some((each) => isPoolOf(each, clusterId, pool)))
        .map((shown) => ({ clusterId, shown }));
    }),
  );
  return lists.flat();
};

export const shownPool = async (
  { copies }: Pick<AwayDeps, 'copies'>,
  env: EnvRecord,
  member: EnvMember,
): Promise<ShownPool | undefined> => {
  const { clusterId } = member;
  const pools = await copies.listPools(placeOf(env, clusterId));
  return pools.find((pool) => isPoolOf(member, clusterId, pool));
};

const isPoolOf = (member: EnvMember, clusterId: string, { name }: ShownPool): boolean =>
  member.clusterId === clusterId && member.name === name;

export const syncAway = async (
  away: AwayDeps | undefined,
  env: EnvRecord,
  localCluster: string,
): Promise<readonly FailedMember[]> => {
  if (!away) return [];
  const failed = await Promise.all(
    clustersOf(env, localCluster).map(async (clusterID) => {
      try {
        await away.copies.sync(placeOf(env, clusterID));
        return [];
      } catch (error) {
        const why =
          error instanceof Refusal ? error.message : 'the cluster could not be reached; try again';
        return env.members
          .filter((member) => member.clusterId === clusterID && member.deleting === false)
          .map(({ name }) => ({ member: name, clusterID, error: why }));
      }
    }),
  );
  return failed.flat();
};

export const lookAway = async (
  away: AwayDeps | undefined,
  env: EnvRecord,
  localCluster: string,
): Promise<void> => {
  await Promise.all(
    clustersOf(env, localCluster).map(
      async (clusterId) => await away?.mirror.look(env.uid, clusterId),
    ),
  );
};

const clustersOf = ({ members }: EnvRecord, localCluster: string): readonly string[] => [
  ...new Set(
    members.map(({ clusterId }) => clusterId).filter((clusterId) => clusterId !== localCluster),
  ),
];
