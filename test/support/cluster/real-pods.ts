import type { Cluster } from '../../../local-cluster/control-plane/cluster.ts';
import { installCustomResources } from '../../../local-cluster/custom-resources.ts';
import { realNodeImage } from '../../../local-cluster/real-node.ts';
import type { PodProgram } from '../builders/a-pod.ts';
import { PodDriver, type PodOrderPart } from './a-pod-driver.ts';
import type { LaunchOrder } from '../../../src/model/sandbox.ts';
import type { ContainerDefinition } from '../../../src/model/templates/template.ts';

/** Suites leave many Pods behind, and a real node has only this machine. */
const SMALL = { cpuCores: 0.01, memoryBytes: 2 ** 20 };

/** In its own namespace, from the suite's first hook on. */
export const onRealPods = (cluster: () => Cluster): (() => PodDriver) => {
  let pods: PodDriver | undefined;
  before('a driver on the real node', async () => {
    await installCustomResources(cluster());
    pods = await PodDriver.watching(cluster(), await cluster().namespace());
  });
  after(() => pods?.close());
  return () => pods ?? missing();
};

const missing = (): never => {
  throw new Error('there is a driver from the first before hook on, not earlier');
};

/** Like `sleep`, but ends at once on a signal. */
export const idleProgram = (image: 'busybox' | 'tools'): PodProgram => ({
  image: realNodeImage(image),
  command: ['sh', '-c', 'trap exit TERM; while :; do sleep 1000 & wait $!; done'],
});

/** Prints what is added to /tmp/printed. */
export const printingProgram: PodProgram = {
  image: realNodeImage('tools'),
  command: ['bash', '-c', 'touch /tmp/printed; trap exit TERM; tail -n +1 -f /tmp/printed & wait'],
};

/** Images and main processes that a real node has. */
export const realOrder = (
  pods: PodDriver,
  container: Partial<ContainerDefinition> = {},
  part: Omit<PodOrderPart, 'container'> = {},
): LaunchOrder => {
  const { image = realNodeImage('busybox') } = container;
  return pods.order(image, {
    ...part,
    container: {
      workingDir: '/tmp',
      requests: SMALL,
      given: { command: ['sleep', '1000000'] },
      ...container,
      image,
    },
  });
};

/** Listens on the loopback, which port-forwards reach. */
export const echoOrder = (pods: PodDriver, port: number): LaunchOrder =>
  realOrder(pods, {
    image: realNodeImage('tools'),
    given: { command: ['python3', '-c', ECHO, String(port)] },
  });

/** In a Pod without an instance. */
export const echoingProgram = (port: number): PodProgram => ({
  image: realNodeImage('tools'),
  command: ['python3', '-c', ECHO, String(port)],
});

/** On all of its addresses. */
export const webOrder = (
  pods: PodDriver,
  port: number,
  container: Partial<ContainerDefinition> = {},
): LaunchOrder =>
  realOrder(pods, {
    image: realNodeImage('tools'),
    given: { command: ['python3', '-m', 'http.server', String(port)] },
    ...container,
  });

const ECHO = `
import socketserver, sys
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while received := self.request.recv(65536):
            self.request.sendall(received)
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
Server(("127.0.0.1", int(sys.argv[1])), Echo).serve_forever()`;

/** On `relayOrder`'s loopback. */
export const RELAY_PORT = 7_001;

/** A connection's first line names a port of this machine to connect to. */
export const relayOrder = (pods: PodDriver): LaunchOrder =>
  realOrder(pods, { image: realNodeImage('tools'), given: { command: ['python3', '-c', RELAY] } });

const RELAY = `
import socket, socketserver, threading
route = next(line.split() for line in open("/proc/net/route") if line.split()[1] == "00000000")
MACHINE = socket.inet_ntoa(bytes.fromhex(route[2])[::-1])
def pump(source, sink, ends):
    try:
        while received := source.recv(65536):
            sink.sendall(received)
    except OSError:
        ends = (socket.SHUT_RDWR, socket.SHUT_RDWR)
    for each, how in zip((source, sink), ends):
        try: each.shutdown(how)
        except OSError: pass
class Relay(socketserver.BaseRequestHandler):
    def handle(self):
        port = b""
        while not port.endswith(b"\\n"):
            port += self.request.recv(1) or b"\\n"
        with socket.create_connection((MACHINE, int(port))) as server:
            answers = threading.Thread(target=pump, args=(server, self.request, (socket.SHUT_RD, socket.SHUT_WR)))
            answers.start()
            pump(self.request, server, (socket.SHUT_RDWR, socket.SHUT_RDWR))
            answers.join()
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 64
Server(("127.0.0.1", ${RELAY_PORT}), Relay).serve_forever()`;

/** One container of 64 MiB: the node has only this machine. */
export const realTemplate = (
  name: string,
  command: readonly string[],
  {
    image = 'tools',
    ...part
  }: { readonly image?: 'busybox' | 'tools'; readonly endpoints?: readonly object[] } = {},
): object => ({
  apiVersion: 'sandpool.dev/v1alpha1',
  kind: 'SandboxTemplate',
  metadata: { name },
  spec: {
    containers: [
      {
        name: 'main',
        image: realNodeImage(image),
        command,
        resources: {
          requests: { cpu: '10m', memory: '16Mi' },
          limits: { cpu: '500m', memory: '64Mi' },
        },
      },
    ],
    ...part,
    startupTimeout: '30s',
  },
});
