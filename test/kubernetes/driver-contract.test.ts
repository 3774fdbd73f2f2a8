import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { apiServer } from '../../src/k8s/api-client.ts';
import { readClusterAccess } from '../../src/k8s/cluster-access.ts';
import { PodStreams } from '../../src/k8s/pod-streams.ts';
import { KubernetesSandboxDriver } from '../../src/k8s/sandbox-driver.ts';
import { ServerClock } from '../../src/k8s/server-clock.ts';
import type { Birth } from '../../src/model/sandbox.ts';
import { sandboxDriverSuite, type DriverUnderTest } from '../contracts/sandbox-driver.ts';
import { installCustomResources } from '../support/custom-resources.ts';
import { aDefinition, anOrder } from '../support/instance-orders.ts';
import { quietLog } from '../support/quiet-log.ts';
import { onTheControlPlane } from '../support/shared-cluster.ts';

const ECHO_PORT = 7_000;

describe('the contract of drivers, on the real control plane', function () {
  this.timeout(60_000);
  const controlPlane = onTheControlPlane();
  let echo: Server;
  let namespace: string;

  before(async () => {
    await installCustomResources(controlPlane());
    namespace = await controlPlane().namespace();
    echo = createServer((socket) => { socket.on('error', () => {}).pipe(socket); }).listen(0, '127.0.0.1');
    await once(echo, 'listening');
    await controlPlane().forward(ECHO_PORT, (echo.address() as AddressInfo).port);
  });
  after(() => { echo.close(); });

  /** As the daemon has it; what kwok makes of a Pod goes by the name of its image. */
  const orderOf = (image: string): Birth => {
    const { record, definition } = anOrder(aDefinition({ image }));
    return { record: { ...record, poolOwner: { ...record.poolOwner, namespace }, containerImages: { main: image } }, definition };
  };

  const aDriver = async (): Promise<DriverUnderTest> => {
    controlPlane().forgetPrinted();
    const access = await readClusterAccess({ kubeconfig: controlPlane().kubeconfig('sandpool') }, quietLog);
    const clock = new ServerClock();
    const api = apiServer({ access, version: 'test', clock });
    const streams = new PodStreams({ access, api: api.lane('claims'), log: quietLog, version: 'test' });
    const driver = new KubernetesSandboxDriver({ api, streams, pods: { runAsUser: 65_532, terminationGraceSeconds: 0 }, clock, log: quietLog });
    return {
      driver,
      orders: {
        lasting: () => orderOf('busybox'),
        printing: (text) => {
          for (const line of text.split('\n')) controlPlane().print(line);
          return orderOf('exits');
        },
        echoing: () => orderOf('busybox'),
        unfit: [
          { definition: aDefinition({ image: 'host' }), field: 'spec.containers[0].image' },
          { definition: aDefinition({ image: 'busybox' }, { network: 'host' }), field: 'spec.network' },
        ],
      },
      close: async () => {
        await driver.stop();
        await api.close();
      },
    };
  };

  sandboxDriverSuite('Pods', aDriver);
});
