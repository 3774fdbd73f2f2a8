import { randomUUID } from 'node:crypto';
import { v7 } from 'uuid';
import { STAGE_LABEL } from '../../local-cluster/control-plane/kwok-config.ts';
import type { ApiClient } from '../../src/k8s/api/api-calls.ts';
import { podOf, podPath, podsPath } from '../../src/k8s/sandboxes/pods/pod-resource.ts';
import { poolRecordOf } from '../../src/k8s/records/pool-resource.ts';
import { type ResolvedPool } from '../../src/k8s/records/resolved-pool.ts';
import type { ResourceObject } from '../../src/k8s/records/resource.ts';
import {
  newSandboxObject,
  sandboxesPath,
  storedSandboxOf,
} from '../../src/k8s/sandboxes/sandbox-resource.ts';
import { podNameOf } from '../../src/model/identifiers.ts';
import type { LaunchOrder } from '../../src/model/sandbox.ts';
import { inParallel } from './in-parallel.ts';

/** Instances, each two operations, of which a transaction of etcd takes 128. */
const AT_ONCE = 50;
const WRITERS = 4;
const PODS = { runAsUser: 65_532, terminationGraceSeconds: 0 };
/** Played by kwok, which leaves alone what has this label. */
const NODE = 'node-0';
const LEFT_ALONE = { [STAGE_LABEL]: 'stuck' };

export interface IdleOrder {
  /** A `SandboxPool`, as the API server has it. */
  readonly pool: unknown;
  readonly count: number;
  readonly etcdUrl: string;
}

/**
 * Idle instances of a pool as the product would have made them, but sooner: one by the API server,
 * without a scheduler and kwok's status, and its copies straight into etcd. No replica may run.
 */
export const makeIdle = async (
  api: ApiClient,
  admin: ApiClient,
  { pool: object, count, etcdUrl }: IdleOrder,
): Promise<void> => {
  const pool = object as ResourceObject;
  const {
    uid: poolUid,
    name: poolName,
    owner: poolOwner,
    definition,
    updateRevision,
  } = poolRecordOf(pool, pool.resolved as ResolvedPool);
  const { namespace } = poolOwner;
  const record: LaunchOrder['record'] = {
    id: v7(),
    poolUid,
    poolName,
    poolOwner,
    createdAt: Math.round(performance.timeOrigin + performance.now()),
    updateRevision,
    cpu: definition.cpu,
    memory: definition.memory,
    containerImages: Object.fromEntries(
      definition.containers.map(({ name, image }) => [name, image]),
    ),
    startupTimeoutMs: definition.startupTimeoutMs,
  };
  const sandbox = await api.create(sandboxesPath(namespace), newSandboxObject(record));
  const wanted = podOf({ record, definition }, storedSandboxOf(sandbox)?.uid ?? '', PODS) as {
    metadata: { labels: object };
    spec: object;
  };
  await admin.create(podsPath(namespace), {
    ...wanted,
    metadata: { ...wanted.metadata, labels: { ...wanted.metadata.labels, ...LEFT_ALONE } },
    spec: { ...wanted.spec, nodeName: NODE },
  });
  const pod = await admin.patch(
    `${podPath(namespace, podNameOf(record.id))}/status`,
    'application/merge-patch+json',
    { status: RUNNING() },
  );
  await inParallel(Math.ceil((count - 1) / AT_ONCE), WRITERS, async (n) => {
    const copies = Math.min(AT_ONCE, count - 1 - n * AT_ONCE);
    await putAll(
      etcdUrl,
      Array.from({ length: copies }, () =>
        copyOf(sandbox as Stored, pod as Stored, namespace),
      ).flat(),
    );
  });
};

interface Stored {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: {
    readonly resourceVersion?: string;
    readonly ownerReferences?: readonly object[];
  };
}

/** Key and value. */
type Entry = readonly [string, object];

const copyOf = (sandbox: Stored, pod: Stored, namespace: string): readonly Entry[] => {
  const [name, uid] = [podNameOf(v7()), randomUUID()];
  const owners = pod.metadata.ownerReferences?.map((owner) => ({ ...owner, name, uid }));
  const copied = (
    { metadata: { resourceVersion: _resourceVersion, ...metadata }, ...rest }: Stored,
    part: object,
  ): object => ({ ...rest, metadata: { ...metadata, name, ...part } });
  return [
    [`/registry/sandpool.dev/sandboxes/${namespace}/${name}`, copied(sandbox, { uid })],
    [
      `/registry/pods/${namespace}/${name}`,
      {
        apiVersion: 'v1',
        kind: 'Pod',
        ...copied(pod, { uid: randomUUID(), ownerReferences: owners }),
      },
    ],
  ];
};

const putAll = async (etcdUrl: string, entries: readonly Entry[]): Promise<void> => {
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const success = entries.map(([key, value]) => ({
    request_put: { key: base64(key), value: base64(JSON.stringify(value)) },
  }));
  const answer = await fetch(`${etcdUrl}/v3/kv/txn`, {
    method: 'POST',
    body: JSON.stringify({ success }),
  });
  if (!answer.ok) throw new Error(`etcd answered ${answer.status}: ${await answer.text()}`);
};

const RUNNING = (): object => {
  const now = new Date(performance.timeOrigin + performance.now())
    .toISOString()
    .replace(/\.\d+Z/, 'Z');
  const conditions = ['PodScheduled', 'Initialized', 'Ready', 'ContainersReady'].map((type) => ({
    type,
    status: 'True',
    lastTransitionTime: now,
  }));
  return {
    phase: 'Running',
    startTime: now,
    conditions,
    hostIP: '127.0.0.1',
    podIP: '127.128.0.9',
    podIPs: [{ ip: '127.128.0.9' }],
    containerStatuses: [
      {
        name: 'main',
        image: 'registry.invalid/sandbox:1',
        imageID: 'registry.invalid/sandbox:1',
        ready: true,
        started: true,
        restartCount: 0,
        state: { running: { startedAt: now } },
      },
    ],
  };
};
