import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { sandboxDriverSuite, type DriverUnderTest } from '../contracts/sandbox-driver.ts';
import { PodDriver } from '../support/cluster/a-pod-driver.ts';
import { execProbe } from '../support/builders/a-probe.ts';
import { installCustomResources } from '../../local-cluster/custom-resources.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { sampled } from '../support/harness/sampled.ts';

const ECHO_PORT = 7_000;

describe('the driver contract on a real control plane', function () {
  const controlPlane = onTheControlPlane();
  let echo: Server;
  let namespace: string;

  before(async () => {
    await installCustomResources(controlPlane());
    namespace = await controlPlane().namespace();
    echo = createServer((socket) => {
      socket.on('error', () => {}).pipe(socket);
    }).listen(0, '127.0.0.1');
    await once(echo, 'listening');
    await controlPlane().forward(ECHO_PORT, (echo.address() as AddressInfo).port);
  });
  after(() => {
    echo.close();
  });

  const aDriver = async (): Promise<DriverUnderTest> => {
    controlPlane().forgetPrinted();
    const pods = await PodDriver.make(controlPlane(), namespace);
    const probe = execProbe(['true']);
    return {
      driver: pods.driver,
      orders: {
        lasting: () => pods.order(),
        printing: (text) => {
          for (const line of text.split('\n')) controlPlane().print(line);
          return pods.order('exits');
        },
        echoing: () => pods.order(),
        unfit: [
          { definition: pods.order('host').definition, field: 'spec.containers[0].image' },
          {
            definition: pods.order('busybox', { definition: { network: 'host' } }).definition,
            field: 'spec.network',
          },
          {
            definition: pods.order('busybox', {
              container: { readinessProbe: probe },
              definition: {
                endpoints: { web: { port: 80, scheme: 'http', readinessProbe: probe } },
              },
            }).definition,
            field: 'spec.endpoints',
          },
        ],
      },
      close: () => pods.close(),
    };
  };

  sampled(() => sandboxDriverSuite('Pods', aDriver));
});
