import type { Records } from '../../contracts/record-store.ts';
import type { EnvRecord } from '../../model/envs/env.ts';
import type { EnvMirror } from '../runtime/record-mirror.ts';
import { type GroupHost, keyOf as memberKeyOf, partsOf } from '../env/group-host.ts';
import { groupSpecOf } from '../env/group-spec.ts';
import type { MemberHost } from '../env/member-host.ts';
import type { PoolHost } from '../pool/pool-host.ts';
import { inspectBroken } from './inspect-broken.ts';
import { inspectGroup, shownGroup } from './inspect-group.ts';
import { inspectMember, shownMember } from './inspect-member.ts';
import type { InspectedActors } from './inspected-actors.ts';

export interface InspectedEnvsDeps {
  readonly envs: EnvMirror;
  readonly records: Pick<Records<EnvRecord>, 'get'>;
  readonly pools: PoolHost;
}

export const inspectedMembers = ({
  members,
  ...deps
}: InspectedEnvsDeps & { readonly members: MemberHost }): InspectedActors => ({
  transitions: members.actors.transitions,
  keyOf: keyIn(deps.envs),
  ofPool: (poolUid) => {
    const pool = deps.pools.recordOf(poolUid);
    return { keys: pool?.env ? [memberKeyOf(pool.env.uid, pool.name)] : [] };
  },
  inspect: (key) => {
    const view = members.whole(key);
    const since = members.actors.transitions.current(key)?.since ?? 0;
    if (view) return inspectMember(key, view, since);
    return members.actors.rebuilds.isBroken(key)
      ? inspectBroken(named(deps, 'member', key), since)
      : undefined;
  },
  durable: async (key) => {
    const member = (await recorded(deps, key))?.members.find(
      ({ name }) => name === partsOf(key)[1],
    );
    return member && shownMember(member);
  },
  pendingOf: (key) => members.actors.pendingOf(key),
  rebuild: async (key) => {
    if (members.actors.pendingOf(key).length > 0) return 'busy';
    if (!members.whole(key) && !members.actors.rebuilds.isBroken(key)) return 'unknown';
    await members.actors.rebuild(key);
    return 'rebuilt';
  },
});

export const inspectedGroups = ({
  groups,
  ...deps
}: InspectedEnvsDeps & { readonly groups: GroupHost }): InspectedActors => ({
  transitions: groups.actors.transitions,
  keyOf: keyIn(deps.envs),
  ofPool: (poolUid) => {
    const pool = deps.pools.recordOf(poolUid);
    const group =
      pool?.env &&
      deps.envs.get(pool.env.uid)?.members.find(({ name }) => name === pool.name)?.config
        .scalingGroup;
    return { keys: pool?.env && group !== undefined ? [memberKeyOf(pool.env.uid, group)] : [] };
  },
  inspect: (key) => {
    const [envUid] = partsOf(key);
    const view = groups.whole(key);
    const since = groups.actors.transitions.current(key)?.since ?? 0;
    if (view) return inspectGroup(key, { view, env: deps.envs.get(envUid), since });
    return groups.actors.rebuilds.isBroken(key)
      ? inspectBroken(named(deps, 'group', key), since)
      : undefined;
  },
  durable: async (key) => {
    const env = await recorded(deps, key);
    const group = env?.groups.find(({ name }) => name === partsOf(key)[1]);
    return env && group && shownGroup(groupSpecOf(env, group));
  },
  pendingOf: (key) => groups.actors.pendingOf(key),
  rebuild: async (key) => {
    if (groups.actors.pendingOf(key).length > 0) return 'busy';
    if (!groups.whole(key) && !groups.actors.rebuilds.isBroken(key)) return 'unknown';
    groups.rebuild(key);
    return 'rebuilt';
  },
});

const named = ({ envs }: InspectedEnvsDeps, kind: 'member' | 'group', key: string) => {
  const [envUid, name] = partsOf(key);
  const env = envs.get(envUid);
  return {
    kind,
    key,
    name: env ? `${env.owner.namespace}/${env.name}/${name}` : key,
    shardKey: envUid,
  };
};

/** Accepts `{envUid}/{name}`, `{env}/{name}` or `{namespace}/{env}/{name}`. */
const keyIn =
  (envs: EnvMirror) =>
  (text: string, namespace: string): string | undefined => {
    const parts = text.split('/');
    const name = parts.at(-1) ?? '';
    if (parts.length === 3) return keyFor(envs.index.uidOf(parts[0] ?? '', parts[1] ?? ''), name);
    if (parts.length !== 2) return undefined;
    const env = parts[0] ?? '';
    return keyFor(envs.get(env) ? env : envs.index.uidOf(namespace, env), name);
  };

const keyFor = (envUid: string | undefined, name: string): string | undefined =>
  envUid === undefined ? undefined : memberKeyOf(envUid, name);

const recorded = async (
  { envs, records }: Omit<InspectedEnvsDeps, 'pools'>,
  key: string,
): Promise<EnvRecord | undefined> => {
  const [uid] = partsOf(key);
  const known = envs.get(uid);
  const record = known && (await records.get(`${known.owner.namespace}/${known.name}`));
  return record?.uid === uid ? record : undefined;
};
