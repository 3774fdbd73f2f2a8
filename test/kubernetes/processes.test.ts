import { servicesOnPods } from '../e2b/services/on-pods.ts';
import { processesSuite } from '../contracts/processes.ts';
import { PodDriver } from '../support/cluster/a-pod-driver.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { sampled } from '../support/harness/sampled.ts';

describe('on simulated nodes', () => {
  const cluster = onTheControlPlane();

  sampled(() => {
    processesSuite('Pods', async () => {
      const pods = await PodDriver.alone(cluster());
      return {
        processes: pods.driver.processes,
        instance: async () => (await pods.claimed()).id,
        close: () => pods.close(),
      };
    });
  });

  servicesOnPods(() => PodDriver.alone(cluster()));
});
