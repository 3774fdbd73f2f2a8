import { ENV, type FleetArena, memberOf, WORK } from './fleet-arena.ts';
import type { SeenEnv, ShownMember } from './fleet-verdict.ts';
import type { HttpClient } from '../../harness/http-client.ts';

const ANSWER_MS = 12_000;
/** A daemon on one machine comes with the second. */
const OWN_POOLS: readonly unknown[] = [WORK, 'default'];

export const envsSeen = async ({
  workers,
  managers,
  memberReplicas,
}: Pick<FleetArena, 'workers' | 'managers' | 'memberReplicas'>): Promise<readonly SeenEnv[]> =>
  await Promise.all(
    workers.map(async (worker): Promise<SeenEnv> => {
      const { clusterId } = worker;
      const client = worker.client();
      try {
        const envs = await itemsOf(client, '/envs?limit=100');
        const pools = await itemsOf(client, '/sandboxpools?limit=100');
        const sides = [
          { where: clusterId, at: client },
          ...managers.map((each) => ({ where: each.replica.name, at: each.client('') })),
        ];
        return {
          clusterId,
          member: memberOf(clusterId),
          most: memberReplicas,
          copies: envs.filter(({ name }) => name === ENV).length,
          pools: pools.flatMap(({ name, spec }) => {
            const { replicas } = spec as { readonly replicas: number };
            return OWN_POOLS.includes(name) ? [] : [{ name: String(name), replicas }];
          }),
          shown: await Promise.all(
            sides.map(async ({ where, at }) => ({
              where,
              members: await membersAt(at, clusterId),
            })),
          ),
        };
      } finally {
        client.close();
      }
    }),
  );

type Items = readonly Readonly<Record<string, unknown>>[];

const ask = async (client: HttpClient, path: string) =>
  await client.get(path, { signal: AbortSignal.timeout(ANSWER_MS) }).catch(() => undefined);

/** Empty without an answer. */
const itemsOf = async (client: HttpClient, path: string): Promise<Items> =>
  (await ask(client, path))?.json.items ?? [];

const membersAt = async (
  client: HttpClient,
  clusterId: string,
): Promise<readonly ShownMember[]> => {
  const body: unknown = (await ask(client, `/envs/${ENV}`))?.json;
  const { env } = body as { readonly env?: { readonly status: { readonly clusters: Items } } };
  const found = env?.status.clusters.find((each) => each['clusterID'] === clusterId);
  return ((found?.['observedMembers'] ?? []) as Items).map((each) => ({
    name: String(each['name']),
    state: String(each['state']),
    desired: Number(each['desiredReplicas']),
    current: Number(each['currentReplicas']),
  }));
};
