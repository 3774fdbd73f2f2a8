import type { CopyPlace, EnvCopies } from '../../../src/contracts/fleet/env-copies.ts';
import type { CopiedMember, EnvCopy } from '../../../src/model/envs/env-copy.ts';
import { wordRevisionOf } from '../../../src/model/envs/env.ts';
import { clusterUnavailable } from '../../../src/model/fleet/cluster-refusals.ts';
import { Refusal } from '../../../src/model/refusals.ts';
import type { Caller } from '../../../src/model/tenant.ts';
import type { EnvOperations } from '../../../src/actors/env/commands/env-operations.ts';

/** Faults of messages to a cluster. */
export class CopyFaults {
  isCut = false;
  /** Delay there and back. */
  latencyMs = 1;
  /** This many further answers are lost; their requests take effect. */
  lost = 0;
  /** Delays a message, and its answer. */
  arrives: () => Promise<void> = async () => undefined;
  /** Falsifies a report about a member. */
  lie: (member: CopiedMember) => CopiedMember = (member) => member;
}

interface Cluster {
  readonly operations: EnvOperations;
  readonly faults: CopyFaults;
}

/** Envs of clusters in this process, instead of links. */
export const copiesOnWorlds = (clusters: Readonly<Record<string, Cluster>>): EnvCopies => {
  const ask = async <T>(
    { clusterId, owner }: CopyPlace,
    work: (operations: EnvOperations, caller: Caller) => Promise<T>,
  ): Promise<T> => {
    const cluster = clusters[clusterId];
    if (!cluster || cluster.faults.isCut) throw clusterUnavailable(clusterId, 'is cut off');
    const { operations, faults } = cluster;
    await faults.arrives();
    const caller: Caller = { ...owner, role: 'user', keyId: 'fleet-envs' };
    try {
      const done = await work(operations, caller);
      if (faults.lost === 0) return done;
      faults.lost -= 1;
    } finally {
      await faults.arrives();
    }
    throw clusterUnavailable(clusterId, 'gave no answer');
  };
  return {
    knows: (clusterId) => clusters[clusterId] !== undefined,
    isRemoved: (clusterId) => clusters[clusterId] === undefined,
    latencyOf: (clusterId) => {
      const { isCut = true, latencyMs } = clusters[clusterId]?.faults ?? {};
      return isCut ? undefined : latencyMs;
    },
    read: (place) =>
      unless('ENV_NOT_FOUND', () =>
        ask(place, async ({ getEnv }, caller) => {
          const { record, observed } = await getEnv(caller, place.name);
          const { access, templateRef, overrides, labels, annotations } = record;
          const word = { templateRef, overrides, labels, annotations };
          const lie = clusters[place.clusterId]?.faults.lie ?? ((member) => member);
          const copy = JSON.parse(
            JSON.stringify({
              tag: wordRevisionOf(record),
              word: access === undefined ? word : { ...word, access },
              members: observed,
            }),
          ) as EnvCopy;
          return { ...copy, members: copy.members.map(lie) };
        }),
      ),
    create: (place, word) =>
      ask(place, async ({ createEnv }, caller) => {
        await createEnv(caller, { name: place.name, mode: 'WarmPool', ...word });
      }),
    replace: (place, word) =>
      ask(place, async ({ replaceEnv }, caller) => {
        await replaceEnv(caller, place.name, word);
      }),
    end: async (place) => {
      await unless('ENV_NOT_FOUND', () =>
        ask(place, ({ deleteEnv }, caller) => deleteEnv(caller, place.name, { force: false })),
      );
    },
    addMember: (place, member) =>
      ask(place, async ({ addMember }, caller) => {
        await addMember(caller, place.name, member);
        return { name: member.name };
      }),
    changeMember: (place, name, { tag, config = {}, replicas }) =>
      ask(place, async ({ updateMember }, caller) => {
        await updateMember(
          caller,
          { env: place.name, member: name },
          {
            config,
            replicas,
            ifMatch: tag === undefined ? undefined : new Set([tag]),
          },
        );
        return { name };
      }),
    endMember: async (place, name, force) => {
      await unless('ENV_MEMBER_NOT_FOUND', () =>
        ask(place, ({ deleteMember }, caller) =>
          deleteMember(caller, { env: place.name, member: name }, { force }),
        ),
      );
    },
    endGroup: async (place, name) => {
      await unless('AUTOSCALING_GROUP_NOT_FOUND', () =>
        ask(place, ({ deleteGroup }, caller) => deleteGroup(caller, place.name, name)),
      );
    },
    listPools: async (place) =>
      (await unless('ENV_NOT_FOUND', () =>
        ask(place, async ({ listMembers }, caller) =>
          (await listMembers(caller, place.name)).flatMap((pool) =>
            'record' in pool ? [{ name: pool.record.name }] : [],
          ),
        ),
      )) ?? [],
    sync: (place) =>
      ask(place, async ({ syncEnv }, caller) => {
        await syncEnv(caller, place.name);
      }),
  };
};

const unless = async <T>(code: string, work: () => Promise<T>): Promise<T | undefined> => {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Refusal && error.code === code) return undefined;
    throw error;
  }
};
