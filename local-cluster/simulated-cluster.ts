/**
 * For replicas of Sandpool. Run by itself, waits for Ctrl-C: `node --import tsx
 * local-cluster/simulated-cluster.ts [NODES]`.
 */
import { fileURLToPath } from 'node:url';
import { ControlPlane, type ControlPlaneOptions } from './control-plane.ts';
import { startRedis, type RedisServer } from './redis-server.ts';

export interface SimulatedCluster {
  readonly controlPlane: ControlPlane;
  readonly redis: RedisServer;
  stop(): Promise<void>;
}

export const startSimulatedCluster = async (
  options: ControlPlaneOptions = {},
): Promise<SimulatedCluster> => {
  const redis = await startRedis();
  try {
    const controlPlane = await ControlPlane.start(options);
    return {
      controlPlane,
      redis,
      stop: async () => {
        await Promise.all([controlPlane.stop(), redis.stop()]);
      },
    };
  } catch (error) {
    await redis.stop();
    throw error;
  }
};

const byHand = async (nodes: number): Promise<void> => {
  const cluster = await startSimulatedCluster({ nodes });
  const { controlPlane, redis } = cluster;
  const namespace = await controlPlane.namespace('team-a');
  process.stdout.write(
    [
      `administrator   ${controlPlane.kubectlProgram} --kubeconfig=${controlPlane.kubeconfig('admin')}`,
      `sandpool        ${controlPlane.kubeconfig('sandpool')}`,
      `namespace       ${namespace}`,
      `Redis           ${redis.settings.urls.join(' ')}`,
      'Ctrl-C ends it.',
      '',
    ].join('\n'),
  );
  const timer = setInterval(() => undefined, 60_000);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      clearInterval(timer);
      void cluster.stop();
    });
  }
};

if (process.argv[1] === fileURLToPath(import.meta.url)) await byHand(Number(process.argv[2] ?? 5));
