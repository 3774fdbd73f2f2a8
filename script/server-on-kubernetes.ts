/**
 * A simulated cluster, Redis, three replicas of the built daemon, and a balancer (`script/server
 * --kubernetes`). With TEST_REAL_NODE from script/real-node, the cluster has a real node. All ends
 * with this process, and nothing is kept.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError } from '../src/cli/client/api-error.ts';
import { Balancer } from '../local-cluster/balancer.ts';
import { manifestOf, renderChart } from '../local-cluster/chart.ts';
import { installCustomResources } from '../local-cluster/custom-resources.ts';
import { eventually } from '../local-cluster/eventually.ts';
import { realNodeImage } from '../local-cluster/real-node.ts';
import { noRedis } from '../local-cluster/redis-server.ts';
import { Replicas } from '../local-cluster/replicas.ts';
import {
  type SimulatedCluster,
  startSimulatedCluster,
} from '../local-cluster/simulated-cluster.ts';
import { watchedFolder } from '../local-cluster/watched-folder.ts';

const NODES = 5;
const REAL_NODE = process.env['TEST_REAL_NODE'];
const FIRST_POOL = { name: 'default', templateName: 'default', replicas: 4 };

const serve = async (port: number): Promise<void> => {
  if (noRedis !== undefined) throw new Error(noRedis);
  const parts: (() => Promise<unknown>)[] = [];
  const asked = new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => {
        resolve();
      });
  });
  const keep = <T>(part: T, stop: (part: T) => Promise<unknown>): T => {
    parts.push(() => stop(part));
    return part;
  };
  try {
    say('starting a control plane and Redis ...');
    const cluster = keep(
      await startSimulatedCluster(
        REAL_NODE === undefined ? { nodes: NODES } : { realNode: REAL_NODE },
      ),
      (part) => part.stop(),
    );
    say('starting three replicas ...');
    await installCustomResources(cluster.controlPlane);
    for (const name of ['default', 'web']) await cluster.controlPlane.apply(templateOf(name));
    const replicas = keep(
      await Replicas.start({
        cluster: cluster.controlPlane,
        redis: cluster.redis.settings,
        namespacePrefix: 'sandpool-',
      }),
      (part) => part.stop(),
    );
    const keyFile = await firstPool(
      replicas,
      keep(watchedFolder('keys'), async (folder) => {
        rmSync(folder, { recursive: true });
      }),
    );
    const balancer = new Balancer(replicas.list.map((replica) => replica.port));
    await keep(balancer, (part) => part.stop()).start(port);
    say(howTo({ cluster, replicas, port: balancer.port, keyFile }));
    await asked;
    say('stopping ...');
  } finally {
    for (const stop of parts.toReversed())
      await stop().catch((error: unknown) => {
        process.stderr.write(`${String(error)}\n`);
      });
  }
};

/** A real node has no more than this machine: requests little. */
const templateOf = (name: string): object => {
  const manifest = manifestOf(renderChart(), 'SandboxTemplate', name);
  if (REAL_NODE === undefined) return manifest;
  const { containers, ...spec } = manifest['spec'] as {
    readonly containers: readonly { readonly resources: object }[];
  };
  return {
    ...manifest,
    spec: {
      ...spec,
      containers: containers.map((each) => ({
        ...each,
        image: realNodeImage('tools'),
        resources: { ...each.resources, requests: { cpu: '50m', memory: '32Mi' } },
      })),
    },
  };
};

/** Returns the file with the tenant's key. */
const firstPool = async (replicas: Replicas, folder: string): Promise<string> => {
  const key = await replicas.tenant('default', 'default');
  const keyFile = join(folder, 'tenant.key');
  writeFileSync(keyFile, `${key}\n`, { mode: 0o600 });
  writeFileSync(join(folder, 'admin.key'), `${replicas.adminKey}\n`, { mode: 0o600 });
  const client = replicas.replica(0).client(key);
  try {
    // The template may not be known yet.
    await eventually(
      () =>
        client.call('createPool', { body: FIRST_POOL }).then(
          () => true,
          (error: unknown) => {
            if (error instanceof ApiError) return false;
            throw error;
          },
        ),
      'a pool is made',
    );
  } finally {
    client.close();
  }
  return keyFile;
};

const howTo = ({
  cluster: { controlPlane },
  replicas,
  port,
  keyFile,
}: {
  readonly cluster: SimulatedCluster;
  readonly replicas: Replicas;
  readonly port: number;
  readonly keyFile: string;
}): string => `
Sandpool is ready at http://127.0.0.1:${port}, before three replicas (pids ${replicas.list.map(({ pid }) => pid).join(', ')}).
${REAL_NODE === undefined ? 'The nodes are simulated: Pods have a status and no processes of their own; commands in them run on this machine.' : `The node is real: sandboxes are containers of this machine, from the image ${realNodeImage('tools')}.`}
Try, from another terminal:
  export SANDPOOL_SERVER=http://127.0.0.1:${port} SANDPOOL_API_KEY_FILE=${keyFile}
  ./bin/sandpool run -- id
  ./bin/sandpool sandboxes list --phase Idle
  ./bin/sandpool shell
As an administrator of the cluster:
  ${controlPlane.kubectlProgram} --kubeconfig=${controlPlane.kubeconfig('admin')} get sandboxpools,sandboxes,pods -A
A key of Sandpool's admin lies beside the other: ${keyFile.replace('tenant.key', 'admin.key')}
Ctrl-C ends all of it.
`;

const say = (text: string): void => {
  console.log(text);
};

await serve(Number(process.argv[2] ?? 8_080));
