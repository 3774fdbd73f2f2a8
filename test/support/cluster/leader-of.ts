import type { Replica, Replicas } from '../../../local-cluster/replicas.ts';
import { shardOf } from '../../../src/model/shards.ts';
import { HttpClient } from '../harness/http-client.ts';

/** Undefined if no replica claims to lead it. */
export const leaderOf = async (
  replicas: Replicas,
  poolUid: string,
): Promise<Replica | undefined> => {
  for (const replica of replicas.list) {
    if (!replica.isRunning) continue;
    const client = new HttpClient(replica.port, replicas.adminKey);
    const { text } = await client.get('/debug/shards').finally(() => {
      client.close();
    });
    const { shards } = JSON.parse(text) as {
      readonly shards: readonly { readonly leading: boolean }[];
    };
    if (shards[shardOf(poolUid)]?.leading) return replica;
  }
  return undefined;
};
