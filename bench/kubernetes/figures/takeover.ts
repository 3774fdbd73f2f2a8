import { eventually } from '../../../local-cluster/eventually.ts';
import { silentLog } from '../../../src/contracts/log.ts';
import { apiServer } from '../../../src/k8s/api/api-client.ts';
import { readClusterAccess } from '../../../src/k8s/api/cluster-access.ts';
import { PodCreator } from '../births.ts';
import { calm, createPool, onACluster, untilIdleOnAll } from '../cluster.ts';
import { leaderOf } from '../leader-of.ts';
import { silentMetrics } from '../../../src/contracts/metrics.ts';

const COUNT = 200;
/** Of records that are there, when the leader is killed. */
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
    const api = apiServer({
      metrics: silentMetrics,
      access: await readClusterAccess(
        { kubeconfig: controlPlane.kubeconfig('sandpool') },
        silentLog,
      ),
      version: 'bench',
    });
    const seconds: number[] = [];
    try {
      for (let round = 0; round < bench.rounds; round += 1) {
        await calm(cluster);
        const victim = await leaderOf(POOL, cluster, started);
        const service = services.find(({ port }) => port !== victim.port) ?? started.first.service;
        const births = await PodCreator.begin(api, tenantNamespace);
        await service.call(
          {
            method: 'PUT',
            path: `/sandboxpools/${POOL}`,
            body: JSON.stringify({ replicas: COUNT }),
          },
          200,
        );
        await eventually(() => births.count >= KILLED_AT, 'the pool fills');
        const killedAt = performance.now();
        await victim.kill();
        await service.untilIdle(POOL, COUNT);
        seconds.push((performance.now() - killedAt) / 1_000);
        bench.say(
          `killed with ${births.count} records made in all; full after ${seconds.at(-1)?.toFixed(2)} s`,
        );
        births.stop();
        await service.call(
          { method: 'PUT', path: `/sandboxpools/${POOL}`, body: JSON.stringify({ replicas: 0 }) },
          200,
        );
        await service.untilNone(POOL);
        await victim.start();
        await untilIdleOnAll(services, POOL, 0);
      }
    } finally {
      await api.close();
    }
    return [
      {
        name: `leader killed in the middle of a fill 0 to ${COUNT}: full after`,
        unit: 's',
        better: 'less',
        ours: seconds,
        reach: 10,
        beyond: 5,
      },
    ];
  },
);
