import { sandboxDriverSuite, type DriverUnderTest } from '../contracts/sandbox-driver.ts';
import { installCustomResources } from '../../local-cluster/custom-resources.ts';
import { PodDriver } from '../support/cluster/a-pod-driver.ts';
import { execProbe } from '../support/builders/a-probe.ts';
import { echoOrder, realOrder } from '../support/cluster/real-pods.ts';
import { onTheRealNode } from '../support/cluster/shared-cluster.ts';
import { sampled } from '../support/harness/sampled.ts';

describe('the driver contract on a real node', function () {
  const cluster = onTheRealNode();
  let namespace: string;

  before(async () => {
    await installCustomResources(cluster());
    namespace = await cluster().namespace();
  });

  const aDriver = async (): Promise<DriverUnderTest> => {
    const pods = await PodDriver.make(cluster(), namespace);
    const probe = execProbe(['true']);
    return {
      driver: pods.driver,
      orders: {
        lasting: () => realOrder(pods),
        printing: (text) => realOrder(pods, { given: { command: ['echo', text] } }),
        echoing: (port) => echoOrder(pods, port),
        unfit: [
          {
            definition: realOrder(pods, { image: 'host' }).definition,
            field: 'spec.containers[0].image',
          },
          {
            definition: realOrder(pods, {}, { definition: { network: 'host' } }).definition,
            field: 'spec.network',
          },
          {
            definition: realOrder(
              pods,
              { readinessProbe: probe },
              {
                definition: {
                  endpoints: { web: { port: 80, scheme: 'http', readinessProbe: probe } },
                },
              },
            ).definition,
            field: 'spec.endpoints',
          },
        ],
      },
      close: () => pods.close(),
    };
  };

  sampled(() => sandboxDriverSuite('Pods of a real node', aDriver));
});
