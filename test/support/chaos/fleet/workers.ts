import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Balancer } from '../../../../local-cluster/balancer.ts';
import type { ControlPlane } from '../../../../local-cluster/control-plane.ts';
import { startRedis } from '../../../../local-cluster/redis-server.ts';
import { aPodTemplate, Replicas } from '../../../../local-cluster/replicas.ts';
import { DaemonUnderTest } from '../../harness/a-daemon.ts';
import { FaultProxy } from '../../harness/fault-proxy.ts';
import { HttpClient } from '../../harness/http-client.ts';
import { aTemplateFolder } from '../../harness/on-a-daemon.ts';
import { FakeClock } from '../faults/clock-jump.ts';
import { POOL_TEMPLATE } from '../recorder.ts';

/** High enough that figures of one machine bound nothing. */
const ROOMY = { sandboxes: '10000', replicas: '10000' } as const;

export interface FleetWorker {
  readonly clusterId: string;
  readonly ways: readonly FaultProxy[];
  readonly clock: FakeClock;
  readonly hasFiles: boolean;
  kill(): Promise<void>;
  /** By SIGTERM; its sandboxes stay. */
  end(): Promise<void>;
  restart(): Promise<void>;
  signal(name: 'SIGSTOP' | 'SIGCONT'): void;
  port(): number;
  client(key?: string): HttpClient;
  log(): string;
  stop(): Promise<void>;
}

export interface WorkerTerms {
  readonly clusterId: string;
  readonly offsetSeconds: number;
  readonly managers: Replicas;
  readonly token: string;
}

/** Each replica is behind its own link. */
const waysOf = async (managers: Replicas) => {
  const ways: FaultProxy[] = [];
  const ports: number[] = [];
  for (const { port } of managers.list) {
    const way = new FaultProxy({ host: '127.0.0.1', port });
    ports.push(await way.start());
    ways.push(way);
  }
  const balancer = new Balancer(ports);
  await balancer.start();
  return {
    ways,
    address: `ws://127.0.0.1:${balancer.port}`,
    stop: async () => {
      await balancer.stop();
      await Promise.all(ways.map((way) => way.stop()));
    },
  };
};

const partsOf = async ({ clusterId, offsetSeconds, managers, token }: WorkerTerms) => {
  const { ways, address, stop } = await waysOf(managers);
  const clock = new FakeClock();
  clock.set(offsetSeconds);
  const tokenFile = join(managers.replica(0).dataDir, `${clusterId}.token`);
  writeFileSync(tokenFile, token, { mode: 0o600 });
  return { clusterId, ways, clock, address, tokenFile, stop };
};

export const anEmbeddedWorker = async (terms: WorkerTerms): Promise<FleetWorker> => {
  const { address, tokenFile, stop, ...parts } = await partsOf(terms);
  const templates = aTemplateFolder({ [POOL_TEMPLATE]: HOST_SPEC });
  let daemon: DaemonUnderTest;
  const end = async (): Promise<void> => {
    await stop();
    parts.clock.remove();
    templates.remove();
  };
  try {
    daemon = await DaemonUnderTest.start(
      [
        ...['--cluster-id', terms.clusterId, '--templates-dir', templates.folder],
        ...['--namespace-pattern', `${terms.managers.namespacePrefix}{team}`],
        ...['--fleet-managers', address, '--fleet-join-token-file', tokenFile],
        ...['--default-pool-replicas', '0'],
        ...['--quotas-sandboxes', ROOMY.sandboxes, '--quotas-replicas', ROOMY.replicas],
      ],
      undefined,
      { env: parts.clock.env },
    );
  } catch (error) {
    await end();
    throw error;
  }
  return {
    ...parts,
    hasFiles: true,
    kill: () => daemon.kill(),
    end: async () => void (await daemon.stop()),
    restart: async () => void (await daemon.start()),
    signal: (name) => void daemon.run.process.kill(name),
    port: () => daemon.run.port,
    client: (key) => daemon.client(key),
    log: () => daemon.run.stderr(),
    stop: async () => {
      await daemon.dispose();
      await end();
    },
  };
};

const HOST_SPEC = {
  containers: [
    {
      name: 'main',
      image: 'host',
      command: ['/bin/sleep', 'infinity'],
      resources: { limits: { cpu: '1', memory: '64Mi' } },
    },
  ],
  network: 'none',
};

export const aWorkerOnACluster = async (
  terms: WorkerTerms & { readonly cluster: ControlPlane },
): Promise<FleetWorker> => {
  const { address, tokenFile, stop, ...parts } = await partsOf(terms);
  const redis = await startRedis();
  const end = async (): Promise<void> => {
    await redis.stop();
    await stop();
    parts.clock.remove();
  };
  let replicas: Replicas;
  try {
    replicas = await Replicas.start({
      cluster: terms.cluster,
      redis: redis.settings,
      count: 1,
      namespacePrefix: terms.managers.namespacePrefix,
      env: {
        SANDPOOL_CLUSTER_ID: terms.clusterId,
        SANDPOOL_FLEET_MANAGERS: address,
        SANDPOOL_FLEET_JOIN_TOKEN_FILE: tokenFile,
        SANDPOOL_QUOTAS_SANDBOXES: ROOMY.sandboxes,
        SANDPOOL_QUOTAS_REPLICAS: ROOMY.replicas,
        ...parts.clock.env,
      },
    });
    await terms.cluster.apply(aPodTemplate(POOL_TEMPLATE));
  } catch (error) {
    await end();
    throw error;
  }
  const replica = replicas.replica(0);
  return {
    ...parts,
    hasFiles: false,
    kill: () => replica.kill(),
    end: async () => void (await replica.stop()),
    restart: () => replica.start(),
    signal: (name) => replica.signal(name),
    port: () => replica.port,
    client: (key) => new HttpClient(replica.port, key ?? replicas.adminKey),
    log: () => replica.log,
    stop: async () => {
      await replicas.stop();
      await end();
    },
  };
};
