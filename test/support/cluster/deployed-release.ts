import { CHART, helm } from '../../../local-cluster/chart.ts';
import type { ControlPlane } from '../../../local-cluster/control-plane.ts';
import { startRedis, type RedisServer } from '../../../local-cluster/redis-server.ts';
import type { ContainerImage } from './container-image.ts';
import { DeployedReplica, type PodObject } from './deployed-replica.ts';

export interface ReleaseOptions {
  readonly name: string;
  readonly cluster: ControlPlane;
  readonly namespace: string;
  readonly image: ContainerImage;
  readonly values?: object;
  /** Differences of this machine from a cluster's network. */
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * An installation of the chart: kwok plays its Pods, and their containers really run on this
 * machine, with a Redis like the chart's.
 */
export class DeployedRelease {
  readonly #options: ReleaseOptions;
  #redis: RedisServer | undefined;
  replicas: readonly DeployedReplica[] = [];

  private constructor(options: ReleaseOptions) {
    this.#options = options;
  }

  /** Resolves once all replicas listen. */
  static async install(options: ReleaseOptions): Promise<DeployedRelease> {
    const release = new DeployedRelease(options);
    try {
      await release.#install();
      await release.#run();
      return release;
    } catch (error) {
      await release.remove();
      throw error;
    }
  }

  async secretOf(name: string, key: string): Promise<string> {
    const encoded = await this.#get('secret', name, key);
    return Buffer.from(encoded, 'base64').toString();
  }

  async remove(): Promise<void> {
    const { name, cluster, namespace } = this.#options;
    await Promise.all(this.replicas.map((replica) => replica.remove()));
    await this.#redis?.stop();
    helm(['uninstall', name, '--ignore-not-found', ...this.#place()]);
    await cluster.kubectl(
      ...['delete', 'namespace', `${namespace}-default`],
      ...['--wait=false', '--ignore-not-found'],
    );
  }

  async #install(): Promise<void> {
    const { name, cluster, namespace, values } = this.#options;
    // As if they ran: the bundled Redis would wait for a volume.
    helm(
      ['install', name, CHART, '--skip-crds', '--values', '-', ...this.#place()],
      JSON.stringify({
        image: { repository: 'sandpool' },
        namespacePattern: `${namespace}-{team}`,
        ...values,
      }),
    );
    await cluster.kubectl(
      ...['rollout', 'status', `deployment/${name}`, '-n', namespace],
      '--timeout=120s',
    );
    await cluster.kubectl(
      ...['wait', '--for=create', 'serviceaccount/default', '-n', `${namespace}-default`],
      '--timeout=120s',
    );
  }

  async #run(): Promise<void> {
    const { name, cluster, namespace, image, env } = this.#options;
    const redis = await startRedis({ config: await this.#redisConfig() });
    this.#redis = redis;
    const { items: pods } = JSON.parse(
      await cluster.kubectl(
        ...['get', 'pods', '-n', namespace, '-o', 'json'],
        ...['-l', `app.kubernetes.io/name=sandpool,app.kubernetes.io/instance=${name}`],
      ),
    ) as { items: readonly PodObject[] };
    this.replicas = await Promise.all(
      pods.map((pod) =>
        DeployedReplica.start(pod, {
          cluster,
          image,
          env: {
            SANDPOOL_LISTEN: '127.0.0.1:0',
            SANDPOOL_METRICS_LISTEN: '127.0.0.1:0',
            SANDPOOL_COMPATIBLE_API_LISTEN: '127.0.0.1:0',
            SANDPOOL_REDIS_URLS: redis.settings.urls.join(),
            ...env,
          },
        }),
      ),
    );
  }

  async #redisConfig(): Promise<readonly string[]> {
    const { name } = this.#options;
    const text = await this.#get('configmap', `${name}-redis`, 'redis.conf');
    const password = await this.secretOf(`${name}-redis`, 'password.conf');
    return text
      .split('\n')
      .filter((line) => !line.startsWith('dir '))
      .map((line) => (line.startsWith('include ') ? password.trim() : line));
  }

  #get(kind: string, name: string, key: string): Promise<string> {
    const { cluster, namespace } = this.#options;
    const template = `go-template={{index .data "${key}"}}`;
    return cluster.kubectl('get', kind, name, '-n', namespace, '-o', template);
  }

  #place(): readonly string[] {
    const { cluster, namespace } = this.#options;
    return ['--namespace', namespace, `--kubeconfig=${cluster.kubeconfig('admin')}`];
  }
}
