import type { Replica } from '../../local-cluster/replicas.ts';
import { encodeAsk, KeptConnection } from '../kept-connection.ts';

/**
 * Returns the shards that the replica leads, as it says itself; rejects where it does not answer.
 */
export const shardsLedBy = async (
  replica: Replica,
  adminKey: string,
): Promise<readonly number[]> => {
  const connection = await KeptConnection.open(replica.port);
  try {
    const { body } = await connection.send(
      encodeAsk({ method: 'GET', path: '/debug/shards', key: adminKey }),
    );
    const { shards } = JSON.parse(body) as {
      readonly shards: readonly { readonly shard: number; readonly leading: boolean }[];
    };
    return shards.flatMap(({ shard, leading }) => (leading ? [shard] : []));
  } finally {
    connection.close();
  }
};
