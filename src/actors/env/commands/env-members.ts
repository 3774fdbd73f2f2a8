import { omitUndefined } from '../../../lib/plain-data.ts';
import type { Supervisor } from '../../sandbox/supervisor.ts';
import { groupFor, type ScaleUpMode } from '../../../model/envs/autoscaling-group.ts';
import {
  MOST_GROUPS,
  MOST_MEMBERS,
  wordRevisionOf,
  type EnvMember,
  type EnvRecord,
} from '../../../model/envs/env.ts';
import { askedOf } from '../../../model/envs/env-copy.ts';
import { memberSourceOf } from '../../../model/envs/env-rendering.ts';
import { requireMatch } from '../../../model/if-match.ts';
import {
  envBeingDeleted,
  idempotencyKeyReused,
  invalidArgument,
  poolAlreadyExists,
  poolBeingDeleted,
  poolNotFound,
  unavailable,
} from '../../../model/refusals.ts';
import { tooManyGroups, tooManyMembers } from '../../../model/limit-refusals.ts';
import { sameTenant, type Tenant } from '../../../model/tenant.ts';
import { envFieldOf, type EnvsDeps } from './envs.ts';
import {
  changeEnv,
  endingMember,
  findEnv,
  findUsableEnv,
  memberIn,
  withMember,
} from './find-env.ts';
import { poolViewOf } from '../../pool/commands/find-pool.ts';
import { makePool, type MakePoolDeps } from '../../pool/commands/make-pool.ts';
import { requireRoom } from '../../sandbox/commands/reservations.ts';
import {
  listAwayPools,
  changeAwayPool,
  makeAwayPool,
  requireAway,
  requireLink,
  shownPool,
} from './away/away-members.ts';
import type { AddMemberRequest, EnvOperations, MemberChange } from './env-operations.ts';
import { memberDraft, memberPool, reconcileMemberPool, withoutMember } from './member-pool.ts';
import type { AwayPoolView, PoolView } from '../../views.ts';
import { renderSource } from '../../pool/commands/pool-rendering.ts';
import type { WriteRenewedDeps } from '../../pool/commands/pool-renewal.ts';
import { scaleOf } from '../../pool/commands/pool-scale.ts';
import { viewOfPool } from '../../pool/start-hindrance.ts';
import { changePool, type UpdatePoolDeps } from '../../pool/commands/update-pool.ts';

export interface EnvMembersDeps
  extends
    EnvsDeps,
    Omit<MakePoolDeps, 'supervisor'>,
    WriteRenewedDeps,
    Omit<UpdatePoolDeps, 'envs'> {
  readonly supervisor: Supervisor;
  readonly driver: EnvsDeps['driver'];
  readonly templates: EnvsDeps['templates'];
  readonly quotaLimits: EnvsDeps['quotaLimits'];
  readonly pullSecrets: EnvsDeps['pullSecrets'];
  readonly clock: EnvsDeps['clock'];
  readonly firstMembers: readonly FirstMember[];
}

/** Created by the daemon's first start, in the env of the same name. */
export interface FirstMember {
  readonly owner: Tenant;
  readonly name: string;
  readonly replicas: number;
  readonly maxReplicas: number;
}

/**
 * Adds a member with its pool, and with a group of its name unless it joins another (operation
 * `POST /envs/{name}/sandboxpools`). Durable when this resolves; if the pool fails, the env's
 * leader creates it.
 */
export const addMember =
  (deps: EnvMembersDeps): EnvOperations['addMember'] =>
  async (caller, envName, asked) => {
    const env = await findEnv(deps.envs, caller, envName);
    if (env.deleting !== false) throw envBeingDeleted();
    const { mode, request } = likeTheFirst(deps.firstMembers, env, asked);
    const { clusterId = deps.clusterId } = request;
    const isAway = clusterId !== deps.clusterId;
    const { replicas } = scaleOf({ ...request.config, replicas: request.replicas });
    requireGroup(env, request.config);
    const { name = generatedName(env, deps.newUid()) } = request;
    const member: EnvMember = {
      name,
      clusterId,
      createdAt: deps.clock.now(),
      mark: request.mark,
      replicas,
      config: { ...request.config, scalingGroup: request.config.scalingGroup ?? name },
      deleting: false,
    };
    const added = (current: EnvRecord) => withAdded(current, member, mode);
    const pool = isAway
      ? await addAway(deps, env, { member, added })
      : await addHere(deps, env, { member, added });
    return { env: deps.envs.get(env.uid) ?? env, member, pool };
  };

interface Adding {
  readonly member: EnvMember;
  readonly added: (env: EnvRecord) => EnvRecord;
}

const addHere = async (
  deps: EnvMembersDeps,
  env: EnvRecord,
  { member, added }: Adding,
): Promise<PoolView> => {
  const { namespace } = env.owner;
  const rendered = await renderSource(
    { ...deps, fieldOf: envFieldOf },
    memberSourceOf(env, member.config),
    namespace,
  );
  await deps.supervisor.pools.lookUp(namespace, member.name);
  if (deps.supervisor.pools.index.uidOf(namespace, member.name) !== undefined)
    throw poolAlreadyExists();
  await deps.coordination.whenKnown(env.owner);
  const pool = await makePool(deps, memberDraft(deps, env, { member, rendered }), {
    prepare: async () => {
      await changeEnv(deps.envs, env, added);
    },
    undo: async () => {
      await deps.envs
        .change(env.uid, (current) => withoutMember(current, member))
        .catch(() => undefined);
    },
  });
  deps.members.pool({ kind: 'put', record: pool });
  return poolViewOf(deps.supervisor, pool);
};

const addAway = async (
  deps: EnvMembersDeps,
  env: EnvRecord,
  { member, added }: Adding,
): Promise<AwayPoolView> => {
  const away = requireAway(deps.away, env, member.clusterId);
  return await makeAwayPool(away, await changeEnv(deps.envs, env, added), member);
};

export const findMemberByKey =
  (deps: EnvMembersDeps): EnvOperations['findMemberByKey'] =>
  async (caller, envName, mark) => {
    await deps.envs.refresh(`${caller.namespace}/${envName}`);
    const env = deps.envs.named(caller.namespace, envName);
    const member = env?.members.find((each) => each.mark?.key === mark.key);
    if (!env || !member || !sameTenant(env.owner, caller)) return undefined;
    if (member.mark?.body !== mark.body) throw idempotencyKeyReused();
    const pool =
      member.clusterId === deps.clusterId
        ? await memberPool(deps, env, member.name)
        : await awayPool(deps, env, member);
    if (!pool) throw unavailable('the pool of the member is not created yet; try again');
    return { env, member, pool };
  };

/** Operation `GET /envs/{name}/sandboxpools`. */
export const listMembers =
  (deps: EnvMembersDeps): EnvOperations['listMembers'] =>
  async (caller, envName) => {
    const env = await findUsableEnv(deps.envs, caller, envName);
    const pools = await Promise.all(env.members.map(({ name }) => memberPool(deps, env, name)));
    return [
      ...pools.flatMap((pool) => (pool ? [viewOfPool(deps.supervisor, pool)] : [])),
      ...(await listAwayPools(deps.away, env, deps.clusterId)),
    ];
  };

const awayPool = async (
  { away }: EnvMembersDeps,
  env: EnvRecord,
  member: EnvMember,
): Promise<AwayPoolView | undefined> => {
  const { clusterId } = member;
  const shown = await shownPool(requireLink(away, clusterId), env, member);
  return shown && { clusterId, shown };
};

/**
 * Keeps omitted fields (operation `PUT /envs/{name}/sandboxpools/{pool}`). The pool has the change
 * when this resolves.
 */
export const updateMember =
  (deps: EnvMembersDeps): EnvOperations['updateMember'] =>
  async (caller, { env: envName, member: name }, wanted) => {
    const { replicas, config: change, ifMatch } = wanted;
    const before = await findEnv(deps.envs, caller, envName);
    const standing = memberIn(before, name);
    requireMatch(ifMatch, wordRevisionOf(before));
    if (standing.deleting !== false) throw poolBeingDeleted();
    const config = { ...standing.config, ...omitUndefined(change) };
    scaleOf({ ...config, replicas });
    requireGroup(before, change);
    if (standing.clusterId !== deps.clusterId) {
      if (replicas !== undefined) await noteAsked(deps, before, { member: standing, replicas });
      // first, because the other cluster may refuse it
      const pool = await changeAwayPool(requireLink(deps.away, standing.clusterId), before, {
        member: { ...standing, config },
        replicas,
      });
      const env = await changedMember(deps, before, { name, change: wanted });
      return { env, member: memberIn(env, name), pool };
    }
    const { definition } = await renderSource(
      { ...deps, fieldOf: envFieldOf },
      memberSourceOf(before, config),
      before.owner.namespace,
    );
    const { record: current } = (await memberPool(deps, before, name)) ?? {};
    // Before the env changes, so that a refusal changes nothing. A later shortage shows on the
    // pool.
    if (current?.updateStrategy.autoUpdate)
      await requireRoom(deps, current, { ...current, definition });
    const env = await changedMember(deps, before, { name, change: wanted });
    const pool = await memberPool(deps, env, name);
    if (!pool) throw poolNotFound(name);
    if (replicas !== undefined) await changePool(deps, pool.record, { replicas });
    const record = await reconcileMemberPool(deps, env, name);
    if (record) deps.members.pool({ kind: 'put', record });
    return {
      env,
      member: memberIn(env, name),
      pool: poolViewOf(deps.supervisor, record ?? pool.record),
    };
  };

const changedMember = async (
  { envs }: EnvMembersDeps,
  before: EnvRecord,
  {
    name,
    change: { replicas, config, ifMatch },
  }: { readonly name: string; readonly change: MemberChange },
): Promise<EnvRecord> =>
  await changeEnv(envs, before, (current) => {
    requireMatch(ifMatch, wordRevisionOf(current));
    memberIn(current, name);
    return withMember(current, name, ({ asked, ...member }) => ({
      ...member,
      config: { ...member.config, ...omitUndefined(config) },
      ...(replicas === undefined ? askedField(asked) : { replicas }),
    }));
  });

const askedField = (asked: number | undefined): Pick<EnvMember, 'asked'> =>
  asked === undefined ? {} : { asked };

/** Before the remote change: otherwise the leader would shrink the remote pool again. */
const noteAsked = async (
  { envs }: EnvMembersDeps,
  before: EnvRecord,
  { member, replicas }: { readonly member: EnvMember; readonly replicas: number },
): Promise<void> => {
  if (replicas <= askedOf(member)) return;
  await changeEnv(envs, before, (current) =>
    withMember(current, member.name, (each) => ({
      ...each,
      asked: Math.max(askedOf(each), replicas),
    })),
  );
};

/**
 * Empties and removes its pool, and its group if that is empty (operation `DELETE
 * /envs/{name}/sandboxpools/{pool}`). Durable when this resolves; may be repeated.
 */
export const deleteMember =
  (deps: EnvMembersDeps): EnvOperations['deleteMember'] =>
  async (caller, { env: envName, member: name }, { force }) => {
    const before = await findEnv(deps.envs, caller, envName);
    memberIn(before, name);
    await deps.envs.change(before.uid, (env) => endingMember(env, name, force));
    return { name, namespace: before.owner.namespace };
  };

const likeTheFirst = (
  firstMembers: readonly FirstMember[],
  { name, owner }: EnvRecord,
  request: AddMemberRequest,
): { readonly mode?: ScaleUpMode; readonly request: AddMemberRequest } => {
  const { minReplicas, maxReplicas, scalingGroup } = request.config;
  const isSized = [request.replicas, minReplicas, maxReplicas, scalingGroup].some(
    (said) => said !== undefined,
  );
  const first = firstMembers.find(
    (member) => sameTenant(owner, member.owner) && member.name === name,
  );
  if (!first || isSized || request.name !== name) return { request };
  const { replicas } = first;
  const config = { ...request.config, minReplicas: replicas, maxReplicas: first.maxReplicas };
  return { mode: 'Moderate', request: { ...request, replicas, config } };
};

const withAdded = (env: EnvRecord, member: EnvMember, mode?: ScaleUpMode): EnvRecord => {
  if (env.members.some(({ name }) => name === member.name)) throw poolAlreadyExists();
  if (env.members.length >= MOST_MEMBERS) throw tooManyMembers(MOST_MEMBERS);
  const { scalingGroup = member.name } = member.config;
  const known = env.groups.some(({ name }) => name === scalingGroup);
  if (!known && env.groups.length >= MOST_GROUPS) throw tooManyGroups(MOST_GROUPS);
  return {
    ...env,
    members: [...env.members, member],
    groups: known
      ? env.groups
      : [
          ...env.groups,
          groupFor(scalingGroup, { replicas: member.replicas, mode, ...member.config }),
        ],
  };
};

const requireGroup = (
  env: EnvRecord,
  { scalingGroup }: { readonly scalingGroup?: string },
): void => {
  if (scalingGroup !== undefined && !env.groups.some(({ name }) => name === scalingGroup)) {
    throw invalidArgument(
      'scalingGroup',
      'must be a group of the env; omit it to create a group for the member',
      env.groups.map(({ name }) => name),
    );
  }
};

/** A DNS label of at most 63 characters. The end of a uid is random. */
const generatedName = ({ name }: EnvRecord, uid: string): string =>
  `${name.slice(0, 50).replace(/-+$/, '')}-${uid.slice(-10)}`;
