import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { ControlPlane } from '../../local-cluster/control-plane.ts';
import { COMPONENTS } from '../../local-cluster/control-plane/components.ts';
import { installCustomResources } from '../../local-cluster/custom-resources.ts';
import { eventually } from '../../local-cluster/eventually.ts';
import { startRedis, type RedisServer } from '../../local-cluster/redis-server.ts';
import { aPodTemplate, Replicas, type Replica } from '../../local-cluster/replicas.ts';
import type { Bench, Figure } from '../figure.ts';
import type { Measure } from '../measure.ts';
import { untilCalm } from '../process-facts.ts';
import { Service } from '../service.ts';
import { Child } from '../child.ts';
import type { RawOrder, RawResult } from './raw-process.ts';
import { RAW_GROUP } from './raw-records.ts';

export const TEMPLATE = 'bench';
/** Limits for tenants must not stop a measurement. */
const SETTINGS = {
  SANDPOOL_QUOTAS_SANDBOXES: '1000000',
  SANDPOOL_QUOTAS_POOLS: '1000',
  SANDPOOL_QUOTAS_REPLICAS: '1000000',
  SANDPOOL_LOG_LEVEL: 'warn',
};
const NODES = 10;

/** A cluster for each figure; its etcd waits for the disk. */
export interface BenchCluster {
  readonly bench: Bench;
  readonly controlPlane: ControlPlane;
  readonly redis: RedisServer;
  readonly raw: Child<RawOrder, RawResult>;
  readonly namespace: string;
  readonly startReplicas: (
    count: number,
    env?: Readonly<Record<string, string>>,
  ) => Promise<BenchReplicas>;
}

export interface BenchReplicas {
  readonly replicas: Replicas;
  readonly services: readonly Service[];
  readonly first: { readonly replica: Replica; readonly service: Service; readonly pid: number };
  readonly tenantNamespace: string;
  readonly tenantKey: string;
}

export const onACluster = (
  name: string,
  about: string,
  measure: (cluster: BenchCluster) => Promise<readonly Measure[]>,
): Figure => ({
  name,
  about,
  run: async (bench) => {
    const cluster = await startCluster(bench);
    try {
      return await measure(cluster);
    } finally {
      await cluster.end();
    }
  },
});

export const startCluster = async (
  bench: Bench,
): Promise<BenchCluster & { readonly end: () => Promise<void> }> => {
  const [redis, controlPlane] = await Promise.all([
    startRedis({ syncs: true }),
    ControlPlane.start({ nodes: NODES, durable: true }),
  ]);
  const raw = new Child<RawOrder, RawResult>('kubernetes/raw-process');
  const ends: (() => Promise<void>)[] = [
    () => raw[Symbol.asyncDispose](),
    () => controlPlane.stop(),
    () => redis.stop(),
  ];
  const end = async (): Promise<void> => {
    living.delete(end);
    for (const each of ends.splice(0))
      await each().catch((error: unknown) => {
        bench.say(`not ended: ${String(error)}`);
      });
  };
  living.add(end);
  try {
    await installCustomResources(controlPlane);
    const namespace = await controlPlane.namespace('bench-raw');
    await controlPlane.apply([...rawKind(), aPodTemplate(TEMPLATE)]);
    await controlPlane.kubectl(
      'wait',
      '--for=condition=established',
      '--timeout=30s',
      `crd/sandboxes.${RAW_GROUP}`,
    );
    await eventually(
      async () =>
        (await controlPlane.kubectlAs('admin', ['get', `sandboxes.${RAW_GROUP}`, '-A']))
          .exitCode === 0,
      'the raw kind is served',
    );
    const startReplicas: BenchCluster['startReplicas'] = async (count, env = {}) => {
      const replicas = await Replicas.start({
        cluster: controlPlane,
        redis: redis.settings,
        count,
        env: { ...SETTINGS, ...env },
      });
      ends.unshift(() => replicas.stop());
      const key = await replicas.tenant('bench', 'bench');
      const services = replicas.list.map(({ port }) => new Service(port, key, bench.load));
      ends.unshift(async () => {
        await Promise.all(services.map((each) => each.close().catch(() => undefined)));
      });
      const [service] = services;
      const replica = replicas.replica(0);
      if (!service || replica.pid === undefined) throw new Error('no replica runs');
      return {
        replicas,
        services,
        first: { replica, service, pid: replica.pid },
        tenantNamespace: replicas.namespaceOf('bench'),
        tenantKey: key,
      };
    };
    return { bench, controlPlane, redis, raw, namespace, startReplicas, end };
  } catch (error) {
    await end();
    throw error;
  }
};

const living = new Set<() => Promise<void>>();

export const endLiving = async (): Promise<void> => {
  for (const end of [...living]) await end();
};

/** Repeats while the replica does not know the template yet, or counts usage. */
export const createPool = async (
  service: Service,
  name: string,
  replicas: number,
): Promise<void> => {
  await eventually(async () => {
    const { status, body } = await service.answerTo({
      method: 'POST',
      path: '/sandboxpools',
      body: JSON.stringify({ name, templateName: TEMPLATE, replicas }),
    });
    if (status !== 201 && status !== 503 && status !== 404)
      throw new Error(`the pool was answered with ${status}: ${body}`);
    return status === 201;
  }, 'the pool is made');
};

export const calm = async ({ controlPlane }: Pick<BenchCluster, 'controlPlane'>): Promise<void> => {
  await untilCalm(
    COMPONENTS.flatMap((component) => controlPlane.pidOf(component) ?? []),
    CALM_SHARE,
  );
};

/** etcd and the API server are never quite still. */
const CALM_SHARE = 0.15;

export const untilIdleOnAll = async (
  services: readonly Service[],
  pool: string,
  count: number,
): Promise<void> => {
  for (const service of services) await service.untilIdle(pool, count);
};

/** No replica watches it. */
const rawKind = (): readonly object[] => {
  const RBAC = 'rbac.authorization.k8s.io';
  return [
    parse(
      readFileSync('deploy/helm/sandpool/crds/sandboxes.yaml', 'utf8').replaceAll(
        'sandpool.dev',
        RAW_GROUP,
      ),
    ) as object,
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRole',
      metadata: { name: 'bench' },
      rules: [
        {
          apiGroups: [RAW_GROUP],
          resources: ['sandboxes'],
          verbs: ['get', 'list', 'watch', 'create', 'update', 'delete'],
        },
        { apiGroups: [''], resources: ['pods'], verbs: ['patch'] },
      ],
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: 'bench' },
      subjects: [{ kind: 'User', apiGroup: RBAC, name: 'sandpool' }],
      roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: 'bench' },
    },
  ];
};
