import { eventually } from '../../local-cluster/eventually.ts';
import type { Replica } from '../../local-cluster/replicas.ts';
import { shardOf } from '../../src/model/shards.ts';
import type { BenchCluster, BenchReplicas } from './cluster.ts';
import { shardsLedBy } from './shards-led.ts';

/** The replica that launches for the pool, as soon as there is one. */
export const leaderOf = async (
  pool: string,
  { controlPlane }: Pick<BenchCluster, 'controlPlane'>,
  { replicas, tenantNamespace }: BenchReplicas,
): Promise<Replica> => {
  const uid = await controlPlane.kubectl(
    'get',
    'sandboxpool',
    pool,
    '-n',
    tenantNamespace,
    '-o',
    'jsonpath={.resolved.uid}',
  );
  let leader: Replica | undefined;
  await eventually(async () => {
    for (const replica of replicas.list)
      if ((await shardsLedBy(replica, replicas.adminKey)).includes(shardOf(uid))) leader = replica;
    return leader !== undefined;
  }, 'somebody leads the pool');
  if (!leader) throw new Error('nobody leads the pool');
  return leader;
};
