import { z } from 'zod';
import type { FleetLinks } from '../../contracts/fleet/cluster-links.ts';
import type { CopyPlace, EnvCopies, ShownPool } from '../../contracts/fleet/env-copies.ts';
import type { EnvCopy } from '../../model/envs/env-copy.ts';
import { MEMBER_STATES, MOST_MEMBERS, type MemberConfig } from '../../model/envs/env.ts';
import { boundsOf } from '../../lib/streams/json-reader.ts';
import { clusterUnavailable } from '../../model/fleet/cluster-refusals.ts';
import { Refusal } from '../../model/refusals.ts';
import type { Caller } from '../../model/tenant.ts';
import type { ClusterAnswer, ClusterClient, ClusterRequest } from './cluster-client.ts';

const MOST_TAG = 256;
const word = z.string().max(1_024);
/** Exceeds the instances of any pool. */
const count = z.int().min(0).max(100_000);
const texts = z.record(z.string(), z.string());

const MEMBER_BYTES = 32 << 10;
/** The env's text: as stored, as editable, and with whitespace. */
const TIMES_SAID = 3;

const perCluster = <T extends z.ZodType>(field: string, member: T) =>
  z
    .array(z.looseObject({ [field]: z.array(member).max(MOST_MEMBERS) }))
    .max(MOST_MEMBERS)
    .transform((clusters) => clusters.flatMap((each) => each[field] as readonly z.output<T>[]));

const ObservedMember = z
  .object({
    name: word,
    state: z.enum(MEMBER_STATES),
    idleCount: count,
    runningCount: count,
    desiredReplicas: count,
    currentReplicas: count,
    pendingRequests: count,
    scaleUpHeadroom: z.int().min(0),
    updateRevision: word.optional(),
    updatedReplicas: count,
    templateVersion: word.optional(),
  })
  .transform((seen) => ({
    ...{ name: seen.name, state: seen.state },
    idle: seen.idleCount,
    running: seen.runningCount,
    desired: seen.desiredReplicas,
    current: seen.currentReplicas,
    pending: seen.pendingRequests,
    headroom: seen.scaleUpHeadroom,
    updated: seen.updatedReplicas,
    updateRevision: seen.updateRevision,
    templateVersion: seen.templateVersion,
  }));

const Envelope = z.object({
  env: z.object({
    ...{ namespace: word, team: word, user: word },
    spec: z.object({
      clusters: perCluster('members', z.object({ name: word, config: z.looseObject({}) })),
    }),
    status: z.object({ clusters: perCluster('observedMembers', ObservedMember) }),
  }),
  editable: z.object({
    access: z.literal('team').optional(),
    templateRef: z.object({ name: word, version: word.optional() }),
    overrides: z.looseObject({}),
    labels: texts,
    annotations: texts,
  }),
});

const Pools = z.object({ items: z.array(z.looseObject({ name: word })).max(MOST_MEMBERS) });
const Pool = z.object({ template: z.looseObject({ name: word }) });

export interface EnvCopiesDeps {
  readonly links: Pick<FleetLinks, 'list' | 'invited' | 'find'>;
  readonly client: Pick<ClusterClient, 'ask'>;
}

export const envCopies = ({ links, client }: EnvCopiesDeps): EnvCopies => {
  const ask = (
    { clusterId, owner, name, members, bytes }: CopyPlace,
    request: Pick<ClusterRequest, 'method' | 'body' | 'ifMatch' | 'isLook'> & {
      readonly below?: string;
    },
  ): Promise<ClusterAnswer> => {
    const { below = '', ...rest } = request;
    const { mostBytes, mostValues } = boundsOf(members + 1, MEMBER_BYTES);
    return client.ask({
      ...rest,
      clusterId,
      bounds: { mostBytes: mostBytes + TIMES_SAID * bytes, mostValues },
      caller: callerOf(owner),
      path: `/envs/${encodeURIComponent(name)}${below}`,
    });
  };
  const knows = (clusterId: string): boolean =>
    links.list().some((each) => each.clusterId === clusterId);
  const member = (name: string): string => `/sandboxpools/${encodeURIComponent(name)}`;
  return {
    knows,
    // a cluster that has just joined may still be invited in this replica's view
    isRemoved: (clusterId) =>
      !knows(clusterId) && !links.invited().some((each) => each.clusterId === clusterId),
    latencyOf: (clusterId) => links.find(clusterId)?.latencyMs(),
    read: async (place, { isLook = false } = {}) => {
      const answer = await orUndefined(ask(place, { method: 'GET', isLook }), 'ENV_NOT_FOUND');
      return answer && copyIn(answer, place);
    },
    create: async ({ clusterId, owner, name }, { ...said }) => {
      await client.ask({
        clusterId,
        caller: callerOf(owner),
        method: 'POST',
        path: '/envs',
        body: { name, ...said },
      });
    },
    replace: async (place, { ...said }) => {
      await ask(place, { method: 'PUT', body: said });
    },
    end: async (place) => {
      await orUndefined(ask(place, { method: 'DELETE' }), 'ENV_NOT_FOUND');
    },
    addMember: async (place, { name, replicas, config }) =>
      shownPool(
        place,
        await ask(place, {
          method: 'POST',
          below: '/sandboxpools',
          body: { name, replicas, ...config },
        }),
      ),
    changeMember: async (place, name, { tag, replicas, config }) =>
      shownPool(
        place,
        await ask(place, {
          method: 'PUT',
          below: member(name),
          body: { replicas, ...config },
          ifMatch: tag,
        }),
      ),
    endMember: async (place, name, force) => {
      const query = force ? '?force=true' : '';
      const asked = ask(place, { method: 'DELETE', below: member(name) + query });
      await orUndefined(asked, 'ENV_NOT_FOUND', 'ENV_MEMBER_NOT_FOUND');
    },
    endGroup: async (place, name) => {
      const below = `/autoscaling/groups/${encodeURIComponent(name)}`;
      await orUndefined(ask(place, { method: 'DELETE', below }), 'AUTOSCALING_GROUP_NOT_FOUND');
    },
    listPools: async (place) => {
      const answer = await orUndefined(
        ask(place, { method: 'GET', below: '/sandboxpools' }),
        'ENV_NOT_FOUND',
      );
      return answer ? read(Pools, place, answer).items : [];
    },
    sync: async (place) => {
      await ask(place, { method: 'POST', below: '/sync-template' });
    },
  };
};

/**
 * Lacks the owner's keys: a gated key may have made the request. Each owner has a key id, so
 * tenants do not share a cluster's rate limit per key.
 */
const callerOf = (owner: CopyPlace['owner']): Caller => ({
  ...owner,
  role: 'user',
  keyId: `fleet-envs/${owner.team}/${owner.user}`,
  gated: true,
});

/** Undefined for another tenant's env, even if it is shared with the owner. */
const copyIn = (answer: ClusterAnswer, place: CopyPlace): EnvCopy | undefined => {
  const { owner } = place;
  const { tag = '' } = answer.tag !== undefined && answer.tag.length <= MOST_TAG ? answer : {};
  const {
    env: { namespace, team, user, spec, status },
    editable: { templateRef, access, ...said },
  } = read(Envelope, place, answer);
  if (namespace !== owner.namespace || team !== owner.team || user !== owner.user) return undefined;
  const configs = new Map(spec.clusters.map(({ name, config }) => [name, config]));
  return {
    tag,
    word: {
      ...said,
      access,
      templateRef: { name: templateRef.name, version: templateRef.version },
    },
    members: status.clusters.map((member) => ({
      ...member,
      config: (configs.get(member.name) ?? {}) as MemberConfig,
    })),
  };
};

const shownPool = (place: CopyPlace, answer: ClusterAnswer): ShownPool =>
  read(Pool, place, answer).template;

const read = <T>(schema: z.ZodType<T>, { clusterId }: CopyPlace, { body }: ClusterAnswer): T => {
  const { data } = schema.safeParse(body);
  if (data === undefined) throw clusterUnavailable(clusterId, 'sent an invalid answer');
  return data;
};

const orUndefined = async (
  asked: Promise<ClusterAnswer>,
  ...codes: readonly string[]
): Promise<ClusterAnswer | undefined> => {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof Refusal && codes.includes(error.code)) return undefined;
    throw error;
  }
};
