import { KubernetesSandboxDriver } from '../../src/k8s/sandboxes/sandbox-driver.ts';
import { NodeSilent, type PodTarget } from '../../src/k8s/sandboxes/pods/pod-presence.ts';
import { podPath } from '../../src/k8s/sandboxes/pods/pod-resource.ts';
import { rewritten, sandboxPath } from '../../src/k8s/sandboxes/sandbox-resource.ts';
import { podNameOf } from '../../src/model/identifiers.ts';
import type { InstanceFact, InstanceRecord } from '../../src/model/sandbox.ts';
import { aClaim, anOrder } from '../support/builders/instance-orders.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import type { MemoryApi } from './a-memory-api.ts';
import { testSeals } from '../support/builders/test-seals.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';
import { testAgents } from '../support/builders/test-agents.ts';

export interface DriverSettings {
  readonly terminationGraceSeconds?: number;
  /** How a command in a Pod goes. */
  readonly exec?: () => Promise<object>;
}

/** A driver over an API server in memory, with one node. Nothing is watched yet. */
export const anUnwatchedDriver = (
  api: MemoryApi,
  { terminationGraceSeconds = 0, exec }: DriverSettings = {},
) => {
  if (!api.objects.has('/api/v1/nodes/n1'))
    api.put('/api/v1/nodes/n1', {
      metadata: { name: 'n1' },
      spec: {},
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    });
  const clock = new TestClock();
  const driver = new KubernetesSandboxDriver({
    metrics: silentMetrics,
    api: api.server,
    streams: fakeStreams(exec) as never,
    outdated: () => undefined,
    seals: testSeals,
    teamOf: (namespace) => namespace,
    clock,
    log: quietLog,
    pods: { agents: testAgents, runAsUser: 1_000, terminationGraceSeconds },
    volumes: { provided: false, list: async () => [] },
  });
  return { driver, clock };
};

/** As `PodStreams`, as far as these tests go. */
const fakeStreams = (exec: DriverSettings['exec']): object => {
  let silent = (_node: string): void => {};
  return {
    gone: () => undefined,
    stop: async () => undefined,
    whenSilent: (told: typeof silent) => {
      silent = told;
    },
    exec: async ({ node }: PodTarget) =>
      await exec?.().catch((error: unknown) => {
        if (error instanceof NodeSilent && node !== undefined) silent(node);
        throw error;
      }),
  };
};

/** The same, watching; `facts`: what it has reported. */
export const aDriver = async (api: MemoryApi, settings: DriverSettings = {}) => {
  const { driver, clock } = anUnwatchedDriver(api, settings);
  const facts: InstanceFact[] = [];
  await driver.watch((fact) => {
    facts.push(fact);
  });
  return {
    driver,
    clock,
    facts,
    last: (id: string) => facts.filter((fact) => fact.id === id).at(-1),
  };
};

/** An instance whose Pod runs on the node; claimed unless said otherwise. */
export const anInstance = async (
  api: MemoryApi,
  driver: KubernetesSandboxDriver,
  { claimed = true, namespace: place }: { claimed?: boolean; namespace?: string } = {},
) => {
  const { record, definition } = anOrder();
  const containers = definition.containers.map((container) => ({
    ...container,
    image: 'registry.invalid/sandbox:1',
  }));
  const poolOwner = { ...record.poolOwner, ...(place === undefined ? {} : { namespace: place }) };
  const born = await driver.launch(
    { record: { ...record, poolOwner }, definition: { ...definition, containers } },
    () => true,
  );
  const { namespace } = born.poolOwner;
  const [recordAt, podAt] = [
    sandboxPath(namespace, born.id),
    podPath(namespace, podNameOf(born.id)),
  ];
  const pod = api.objects.get(podAt) as {
    readonly metadata: { readonly uid: string };
    readonly spec?: object;
  };
  api.put(podAt, {
    ...pod,
    spec: { ...pod.spec, nodeName: 'n1' },
    status: {
      phase: 'Running',
      startTime: '2026-01-01T00:00:00Z',
      conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }],
    },
  });
  const uid = api.objects.get(recordAt)?.metadata.uid ?? '';
  const record2: InstanceRecord = claimed ? { ...born, state: 'claimed', claim: aClaim() } : born;
  if (claimed) api.put(recordAt, rewritten(record2, { uid, podUid: pod.metadata.uid }));
  return { id: born.id, namespace, recordAt, podAt };
};
