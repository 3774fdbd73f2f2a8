import { v7 } from 'uuid';
import { STAGE_LABEL } from '../../test/support/control-plane/kwok-config.ts';
import type { ApiClient } from '../../src/k8s/api-client.ts';
import { podOf, podPath, podsPath } from '../../src/k8s/pod-resource.ts';
import { poolResource } from '../../src/k8s/pool-resource.ts';
import type { ResourceObject } from '../../src/k8s/resource.ts';
import { bornSandbox, sandboxesPath, storedSandboxOf } from '../../src/k8s/sandbox-resource.ts';
import { podNameOf } from '../../src/model/identifiers.ts';
import type { Birth } from '../../src/model/sandbox.ts';
import { inParallel } from './in-parallel.ts';

const WRITERS = 24;
const PODS = { runAsUser: 65_532, terminationGraceSeconds: 0 };
/** Played by kwok, which leaves alone what has this label. */
const NODE = 'node-0';
const LEFT_ALONE = { [STAGE_LABEL]: 'stuck' };

/** Idle instances of a pool as the product would have made them, but sooner: without a scheduler and kwok's status. No replica may run. */
export const makeIdle = async (api: ApiClient, admin: ApiClient, { pool: object, count }: { readonly pool: unknown; readonly count: number }): Promise<void> => {
  const found = poolResource({ template: () => undefined, check: () => undefined, teamOf: () => undefined, now: () => 0 }).read(object as ResourceObject);
  if (found.kind !== 'record') throw new Error(`the pool is ${found.kind}`);
  const { uid: poolUid, name: poolName, owner: poolOwner, definition, updateRevision } = found.record;
  const { namespace } = poolOwner;
  await inParallel(count, WRITERS, async () => {
    const record: Birth['record'] = {
      id: v7(), poolUid, poolName, poolOwner, createdAt: Math.round(performance.timeOrigin + performance.now()), updateRevision, cpu: definition.cpu, memory: definition.memory,
      containerImages: Object.fromEntries(definition.containers.map(({ name, image }) => [name, image])), startupTimeoutMs: definition.startupTimeoutMs,
    };
    const stored = storedSandboxOf(await api.create(sandboxesPath(namespace), bornSandbox(record)));
    const pod = podOf({ record, definition }, stored?.uid ?? '', PODS) as { metadata: { labels: object }; spec: object };
    await admin.create(podsPath(namespace), { ...pod, metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, ...LEFT_ALONE } }, spec: { ...pod.spec, nodeName: NODE } });
    await admin.patch(`${podPath(namespace, podNameOf(record.id))}/status`, 'application/merge-patch+json', { status: RUNNING() });
  });
};

const RUNNING = (): object => {
  const now = new Date(performance.timeOrigin + performance.now()).toISOString().replace(/\.\d+Z/, 'Z');
  const conditions = ['PodScheduled', 'Initialized', 'Ready', 'ContainersReady'].map((type) => ({ type, status: 'True', lastTransitionTime: now }));
  return {
    phase: 'Running', startTime: now, conditions, hostIP: '127.0.0.1', podIP: '127.128.0.9', podIPs: [{ ip: '127.128.0.9' }],
    containerStatuses: [{ name: 'main', image: 'registry.invalid/sandbox:1', imageID: 'registry.invalid/sandbox:1', ready: true, started: true, restartCount: 0, state: { running: { startedAt: now } } }],
  };
};
