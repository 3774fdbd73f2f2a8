import { eventually } from '../../../local-cluster/eventually.ts';
import type { Replica } from '../../../local-cluster/replicas.ts';
import { shardOf } from '../../../src/model/shards.ts';
import { encodeAsk, KeptConnection } from '../../kept-connection.ts';
import { rowOf } from '../../measure.ts';
import { calm, createPool, onACluster, untilIdleOnAll, type BenchReplicas } from '../cluster.ts';

const COUNT = 200;
/** The leader is killed then. */
const KILLED_AT = 60;
const POOL = 'bench';

export const takeover = onACluster(
  'takeover',
  `kill -9 of the replica that fills a pool of ${COUNT}, in the middle of it, until another has filled it`,
  async (cluster) => {
    const { bench, controlPlane, startReplicas } = cluster;
    const started = await startReplicas(3);
    const { services, tenantNamespace } = started;
    await createPool(started.first.service, POOL, 0);
    const where = [POOL, '-n', tenantNamespace, '-o', 'jsonpath={.resolved.uid}'];
    const shard = shardOf(await controlPlane.kubectl('get', 'sandboxpool', ...where));
    const seconds: number[] = [];
    for (let round = 0; round < bench.rounds; round += 1) {
      await calm(cluster);
      const victim = await leaderOf(shard, started);
      const service = services.find(({ port }) => port !== victim.port) ?? started.first.service;
      await service.scale(POOL, COUNT);
      await eventually(async () => {
        const { idleReplicas = 0, startingReplicas = 0 } = await service.counts(POOL);
        return idleReplicas + startingReplicas >= KILLED_AT;
      }, 'the pool fills');
      const killedAt = performance.now();
      await victim.kill();
      await service.untilIdle(POOL, COUNT);
      seconds.push((performance.now() - killedAt) / 1_000);
      bench.say(`full ${seconds.at(-1)?.toFixed(2)} s after the kill`);
      await service.scale(POOL, 0);
      await service.untilNone(POOL);
      await victim.start();
      await untilIdleOnAll(services, POOL, 0);
    }
    const name = `leader killed in the middle of a fill 0 to ${COUNT}: full after`;
    return [rowOf({ name, unit: 's', reach: 10, beyond: 5 }, { ours: seconds }, (s) => s)];
  },
);

const leaderOf = async (shard: number, { replicas }: BenchReplicas): Promise<Replica> => {
  let leader: Replica | undefined;
  await eventually(async () => {
    for (const replica of replicas.list)
      if ((await ledBy(replica, replicas.adminKey)).includes(shard)) leader = replica;
    return leader !== undefined;
  }, 'a replica leads the pool');
  if (!leader) throw new Error('no replica leads the pool');
  return leader;
};

const ledBy = async ({ port }: Replica, key: string): Promise<readonly number[]> => {
  const connection = await KeptConnection.open(port);
  try {
    const ask = encodeAsk({ method: 'GET', path: '/debug/shards', key });
    const { shards } = JSON.parse((await connection.send(ask)).body) as {
      readonly shards: readonly { readonly shard: number; readonly leading: boolean }[];
    };
    return shards.flatMap((each) => (each.leading ? [each.shard] : []));
  } finally {
    connection.close();
  }
};
