import { gatewaySuite } from '../contracts/gateway.ts';
import { endpointSocketSuite, hostileEndpointSuite } from '../contracts/hostile-endpoint.ts';
import type { EndpointWay } from '../http/gateway-support.ts';
import { onRealPods, RELAY_PORT, relayOrder } from '../support/cluster/real-pods.ts';
import { onTheRealNode } from '../support/cluster/shared-cluster.ts';
import { sampled } from '../support/harness/sampled.ts';

const CONNECTION = 'a port of a container';
const LISTENS = `until (exec 3<>/dev/tcp/127.0.0.1/${RELAY_PORT}) 2>/dev/null; do sleep 0.1; done`;

/** The servers are the test's; each connection to them is one to a container's loopback. */
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';
describe('endpoints on a real node', function () {
  const onPods = onRealPods(onTheRealNode());
  let id: string;

  before('a sandbox that leads to servers of the test', async () => {
    const pods = onPods();
    ({ id } = await pods.claimed(relayOrder(pods)));
    const listens = {
      argv: ['bash', '-c', LISTENS],
      timeoutMs: NEVER_COMES_MS,
      outputLimit: 1_000,
    };
    await pods.driver.exec(id, listens, new AbortController().signal);
  });

  const way = (): EndpointWay => ({
    dial: async (port, signal) => {
      const connection = await onPods().driver.dial(id, RELAY_PORT, signal);
      connection.write(`${port}\n`);
      return connection;
    },
    host: '0.0.0.0',
    // each hop more, to the API server, kubelet, runtime and relay, has the kernel's buffers for
    // two sockets
    mostHeld: 128 << 20,
  });

  sampled(() => {
    gatewaySuite(CONNECTION, way);
    hostileEndpointSuite(CONNECTION, way);
    endpointSocketSuite(CONNECTION, way);
  });
});
