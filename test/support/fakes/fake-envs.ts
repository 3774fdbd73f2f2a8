import { groupFor, type AutoscalingGroup } from '../../../src/model/envs/autoscaling-group.ts';
import { wordRevisionOf, type EnvMember, type EnvRecord } from '../../../src/model/envs/env.ts';
import { mergePatch } from '../../../src/actors/env/commands/merge-patch.ts';
import type { RegistryCredentials } from '../../../src/model/pools/pool-source.ts';
import { requireMatch } from '../../../src/model/if-match.ts';
import {
  envAlreadyExists,
  envNotFound,
  groupNotFound,
  invalidArgument,
  poolAlreadyExists,
  type Refusal,
} from '../../../src/model/refusals.ts';
import { accessField, sameTenant, type Caller } from '../../../src/model/tenant.ts';
import { memberIn } from '../../../src/actors/env/commands/find-env.ts';
import type { EnvOperations } from '../../../src/actors/env/commands/env-operations.ts';
import type { EnvView, MemberView, ObservedMember, PoolView } from '../../../src/actors/views.ts';

export interface FakeEnvsDeps {
  readonly now: () => number;
  /** Gets what passwords were given. */
  readonly registries: RegistryCredentials[];
  /** The pool of that name: as it is known, else as it would be. */
  readonly poolOf: (caller: Caller, name: string, replicas: number) => PoolView;
  /** The same, and known from now on. */
  readonly makePool: FakeEnvsDeps['poolOf'];
}

/** Envs in memory; `records` by `namespace/name`. */
export const fakeEnvs = ({ now, registries, poolOf, makePool }: FakeEnvsDeps) => {
  const records = new Map<string, EnvRecord>();
  /** How members stand, by name; a member that is not here has all that it should, idle. */
  const observed = new Map<string, Partial<ObservedMember>>();
  const observedOf = (
    { groups }: EnvRecord,
    { name, clusterId, config, replicas }: EnvMember,
  ): ObservedMember => ({
    name,
    clusterId,
    config,
    state: 'Active',
    idle: replicas,
    running: 0,
    desired: replicas,
    current: replicas,
    pending: 0,
    saturatedUntil: undefined,
    autoscaling: groups.some((group) => group.name === config.scalingGroup && group.enabled),
    headroom: 1,
    updateRevision: 'abc',
    updated: replicas,
    templateVersion: '7',
    ...observed.get(name),
  });
  const viewOf = (record: EnvRecord): EnvView => ({
    record,
    observed: record.members.map((member) => observedOf(record, member)),
    conditions: record.conditions,
    at: now(),
    clusterId: 'local',
    snapshots: new Map(),
  });
  const find = (caller: Caller, name: string): EnvRecord => {
    const record = records.get(`${caller.namespace}/${name}`);
    if (!record || !sameTenant(record.owner, caller)) throw envNotFound();
    return record;
  };
  const put = (record: EnvRecord): EnvView => {
    records.set(`${record.owner.namespace}/${record.name}`, record);
    return viewOf(record);
  };
  const changed = (
    before: EnvRecord,
    part: Partial<EnvRecord>,
    given: readonly RegistryCredentials[] = [],
  ): EnvView => {
    registries.push(...given);
    return put({ ...before, ...part, revision: String(Number(before.revision) + 1) });
  };
  const groupIn = (env: EnvRecord, name: string): AutoscalingGroup =>
    env.groups.find((group) => group.name === name) ?? refuse(groupNotFound());
  const withPool = (env: EnvRecord, member: EnvMember, pool: PoolView): MemberView => ({
    env,
    member,
    pool,
  });
  const operations: EnvOperations = {
    claimPlaces: () => [],
    createEnv: async (
      { namespace, team, user },
      { name, labels, annotations, envDocs, templateRef, mode, overrides, registries: given = [] },
    ) => {
      if (records.has(`${namespace}/${name}`)) throw envAlreadyExists();
      registries.push(...given);
      return put({
        uid: `env-${records.size}`,
        revision: '1',
        name,
        owner: { namespace, team, user },
        createdAt: now(),
        labels,
        annotations,
        ...(envDocs === undefined ? {} : { envDocs }),
        templateRef,
        mode,
        overrides: {
          ...overrides,
          ...(given.length > 0 ? { imagePullSecretConfigured: true } : {}),
        },
        members: [],
        groups: [],
        scaling: {},
        conditions: [
          { type: 'Ready', status: 'True', reason: 'NoMembers', message: '', since: now() },
        ],
        deleting: false,
      });
    },
    findEnvByKey: async () => undefined,
    getEnv: async (caller, name) => viewOf(find(caller, name)),
    listEnvs: async (caller, { all }, { limit, offset }) => {
      const mine = [...records.values()]
        .reverse()
        .filter(({ owner }) => all || sameTenant(owner, caller));
      return {
        items: mine.slice(offset, offset + limit).map(viewOf),
        total: mine.length,
        limit,
        offset,
      };
    },
    replaceEnv: async (
      caller,
      name,
      { ifMatch, registries: given, name: _name, mode: _mode, access, ...word },
    ) => {
      const before = find(caller, name);
      requireMatch(ifMatch, wordRevisionOf(before));
      if (_name !== undefined && _name !== name) throw invalidArgument('name', `must be ${name}`);
      return changed(before, { ...word, ...accessField(access) }, given);
    },
    patchEnv: async (caller, name, { ifMatch, patch, registries: given }) => {
      const before = find(caller, name);
      requireMatch(ifMatch, wordRevisionOf(before));
      return changed(
        before,
        {
          ...(patch.overrides
            ? { overrides: mergePatch({ ...before.overrides }, patch.overrides) }
            : {}),
          ...(patch.labels
            ? { labels: mergePatch({ ...before.labels }, patch.labels) as EnvRecord['labels'] }
            : {}), // texts, as the schema has it
          ...(patch.envDocs ? { envDocs: patch.envDocs } : {}),
        },
        given,
      );
    },
    deleteEnv: async (caller, name) => changed(find(caller, name), { deleting: 'keep-running' }),
    syncEnv: async (caller, name) => viewOf(find(caller, name)),
    addMember: async (caller, envName, { name = 'generated', replicas = 1, config }) => {
      const env = find(caller, envName);
      if (env.members.some((member) => member.name === name)) throw poolAlreadyExists();
      const scalingGroup = config.scalingGroup ?? name;
      if (
        config.scalingGroup !== undefined &&
        !env.groups.some((group) => group.name === scalingGroup)
      )
        throw invalidArgument('scalingGroup', 'must be a group of the env');
      const member: EnvMember = {
        name,
        clusterId: 'local',
        createdAt: now(),
        replicas,
        config: { ...config, scalingGroup },
        deleting: false,
      };
      const groups =
        config.scalingGroup === undefined
          ? [...env.groups, groupFor(name, { replicas, ...config })]
          : env.groups;
      return withPool(
        changed(env, { members: [...env.members, member], groups }).record,
        member,
        makePool(caller, name, replicas),
      );
    },
    findMemberByKey: async () => undefined,
    listMembers: async (caller, name) =>
      find(caller, name).members.map((member) => poolOf(caller, member.name, member.replicas)),
    updateMember: async (caller, { env: envName, member: name }, { replicas, config }) => {
      const env = find(caller, envName);
      const standing = memberIn(env, name);
      const member = {
        ...standing,
        config: { ...standing.config, ...config },
        replicas: replicas ?? standing.replicas,
      };
      return withPool(
        changed(env, { members: env.members.map((each) => (each === standing ? member : each)) })
          .record,
        member,
        poolOf(caller, name, member.replicas),
      );
    },
    deleteMember: async (caller, { env: envName, member: name }) => {
      const env = find(caller, envName);
      const standing = memberIn(env, name);
      changed(env, { members: env.members.filter((member) => member !== standing) });
      return { name, namespace: caller.namespace };
    },
    listGroups: async (caller, name) => find(caller, name).groups,
    getGroup: async (caller, envName, name) => {
      const env = find(caller, envName);
      return { env, group: groupIn(env, name) };
    },
    groupDecisions: async (caller, envName, name) => [
      {
        id: 1,
        at: now(),
        cause: 'demand',
        changes: [{ member: groupIn(find(caller, envName), name).name, from: 0, to: 1 }],
        seen: { desired: 0, running: 0, idle: 0, starting: 0, pending: 1 },
        wanted: 2,
        reason: '1 asked for',
        limitedBy: [],
        outcomes: { [name]: { kind: 'done' } },
      },
    ],
    updateGroup: async (
      caller,
      { env: envName, group: name },
      { ifMatch, scaleUpPolicy, scaleDownPolicy, ...change },
    ) => {
      const env = find(caller, envName);
      const standing = groupIn(env, name);
      requireMatch(ifMatch, wordRevisionOf(env));
      const group = {
        ...standing,
        ...change,
        scaleUpPolicy: { ...standing.scaleUpPolicy, ...scaleUpPolicy },
        scaleDownPolicy: { ...standing.scaleDownPolicy, ...scaleDownPolicy },
      };
      return {
        env: changed(env, { groups: env.groups.map((each) => (each === standing ? group : each)) })
          .record,
        group,
      };
    },
    deleteGroup: async (caller, envName, name) => {
      const env = find(caller, envName);
      const standing = groupIn(env, name);
      changed(env, { groups: env.groups.filter((group) => group !== standing) });
    },
  };
  return { operations, records, observed };
};

const refuse = (refusal: Refusal): never => {
  throw refusal;
};
