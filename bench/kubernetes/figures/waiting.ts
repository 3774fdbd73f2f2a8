import { silentLog } from '../../../src/contracts/log.ts';
import { apiServer } from '../../../src/k8s/api/api-client.ts';
import { readClusterAccess } from '../../../src/k8s/api/cluster-access.ts';
import { inPairs } from '../../figure.ts';
import { encodeAsk, KeptConnection } from '../../kept-connection.ts';
import { pause } from '../../process-facts.ts';
import type { Service } from '../../service.ts';
import { quantile } from '../../statistics.ts';
import { calm, createPool, onACluster } from '../cluster.ts';
import { ReadyPods } from '../ready-pods.ts';
import { silentMetrics } from '../../../src/contracts/metrics.ts';

const POOL = 'waiting';
const CLAIMS = 20;
/** Before the instance that is in the way is given back, so that the claim stands in its line. */
const STANDS_MS = 20;

export const waiting = onACluster(
  'waiting',
  'a claim that waits: from the moment at which its Pod is seen to be ready to its answer, against a claim',
  async (cluster) => {
    const { bench, controlPlane, startReplicas } = cluster;
    const {
      first: { service },
      tenantNamespace,
    } = await startReplicas(1);
    const api = apiServer({
      metrics: silentMetrics,
      access: await readClusterAccess(
        { kubeconfig: controlPlane.kubeconfig('sandpool') },
        silentLog,
      ),
      version: 'bench',
    });
    const ready = await ReadyPods.begin(api, tenantNamespace);
    try {
      await createPool(service, POOL, 1);
      await service.untilIdle(POOL, 1);
      await waitingRound(service, ready); // warms up
      const { ours, theirs } = await inPairs(bench, {
        ours: async () => {
          await calm(cluster);
          return await waitingRound(service, ready);
        },
        theirs: async () => {
          await calm(cluster);
          return await plainRound(service);
        },
      });
      return [
        {
          name: 'waiting claim: Pod ready to answer / a claim, p50',
          unit: 'ms',
          better: 'less',
          reach: 3,
          beyond: 1.5,
          ours,
          theirs,
        },
      ];
    } finally {
      ready.stop();
      await api.close();
    }
  },
);

/** The p50. */
const waitingRound = async (service: Service, ready: ReadyPods): Promise<number> => {
  const latencies: number[] = [];
  let before = await service.claim(POOL);
  const connection = await KeptConnection.open(service.port);
  try {
    for (let n = 0; n < CLAIMS; n += 1) {
      const [ask] = service.keyed([
        {
          method: 'POST',
          path: '/sandboxes',
          key: '',
          body: JSON.stringify({ poolName: POOL, waitTimeoutSeconds: 60 }),
        },
      ]);
      if (!ask) throw new Error('there is one');
      const asked = connection.send(encodeAsk(ask));
      await pause(STANDS_MS);
      await giveBack(service, before);
      const answer = await asked;
      const answeredAt = performance.now();
      if (answer.status !== 201)
        throw new Error(
          `a waiting claim was answered with ${answer.status}: ${answer.body.slice(0, 300)}`,
        );
      const { sandbox } = JSON.parse(answer.body) as {
        readonly sandbox: { readonly sandboxId: string; readonly podName: string };
      };
      before = sandbox.sandboxId;
      latencies.push(answeredAt - (await ready.momentOf(sandbox.podName)));
    }
  } finally {
    connection.close();
  }
  await giveBack(service, before);
  await service.untilIdle(POOL, 1);
  return quantile(latencies, 0.5);
};

const plainRound = async (service: Service): Promise<number> => {
  const latencies: number[] = [];
  for (let n = 0; n < CLAIMS; n += 1) {
    const began = performance.now();
    const id = await service.claim(POOL);
    latencies.push(performance.now() - began);
    await giveBack(service, id);
    await service.untilIdle(POOL, 1);
  }
  return quantile(latencies, 0.5);
};

const giveBack = async (service: Service, id: string): Promise<void> => {
  await service.call({ method: 'DELETE', path: `/sandboxes/${id}` }, 200);
};
