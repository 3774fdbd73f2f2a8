import { eventually } from '../../../local-cluster/eventually.ts';
import { realNodeImage } from '../../../local-cluster/real-node.ts';
import { silentLog } from '../../../src/contracts/log.ts';
import { apiServer } from '../../../src/k8s/api/api-client.ts';
import type { ApiServer } from '../../../src/k8s/api/api-calls.ts';
import { readClusterAccess } from '../../../src/k8s/api/cluster-access.ts';
import { inPairs, type Figure } from '../../figure.ts';
import { pause } from '../../process-facts.ts';
import { startCluster, type BenchCluster, type BenchReplicas } from '../cluster.ts';
import { PodEnds } from '../pod-ends.ts';
import { RawPods } from '../raw-pods.ts';
import { readsOf } from './looks.ts';
import { timedInTurn } from './real-node.ts';
import { silentMetrics } from '../../../src/contracts/metrics.ts';

const TEMPLATE = 'sleeps';
const PODS = 50;
const ENDS = 4;
const WRITERS = 16;
/** As the daemon's own default. */
const GRACE = '5s';
/** After the last Pod is gone: until what outlives its end would have been looked at. */
const LOOKED_MS = 15_000;
const container = {
  name: 'main',
  image: realNodeImage('busybox'),
  command: ['sleep', 'infinity'],
  resources: { requests: { cpu: '10m', memory: '16Mi' }, limits: { cpu: '500m', memory: '32Mi' } },
};
/** A Pod of it is told to end by a signal that `sleep` as its first process does not heed. */
const template = {
  apiVersion: 'sandpool.dev/v1alpha1',
  kind: 'SandboxTemplate',
  metadata: { name: TEMPLATE },
  spec: { containers: [container], startupTimeout: '120s' },
};

/** Many Pods, their ends, and a kubelet that restarts. Needs TEST_REAL_NODE. */
export const realNodePools = (programs: string): Figure => ({
  name: 'real-node-pools',
  about: `on a kubelet, containerd and runc: a pool of ${PODS} against as many raw Pods, ends at the default grace, commands after a restart of the kubelet`,
  run: async (bench) => {
    const cluster = await startCluster(bench, { realNode: programs });
    const access = await readClusterAccess(
      { kubeconfig: cluster.controlPlane.kubeconfig('admin') },
      silentLog,
    );
    const api = apiServer({ metrics: silentMetrics, access, version: 'bench' });
    try {
      await cluster.controlPlane.apply(template);
      const node = new PoolsOfNode(
        cluster,
        await cluster.startReplicas(1, { SANDPOOL_KUBERNETES_TERMINATION_GRACE: GRACE }),
        api,
      );
      await node.begin();
      const fills = await inPairs(bench, { ours: () => node.fill(), theirs: () => node.fillRaw() });
      const ends = [];
      for (let round = 0; round < bench.rounds; round += 1) ends.push(await node.ends());
      const restarts = [];
      for (let round = 0; round < bench.rounds; round += 1) restarts.push(await node.restart());
      return [
        {
          name: `pool of ${PODS} idle on a real node / ${PODS} Pods running`,
          unit: 's',
          better: 'less',
          reach: 1.2,
          beyond: 1.05,
          ...fills,
        },
        {
          name: `DELETE until its Pod is gone, main is sleep, grace ${GRACE}`,
          unit: 'ms',
          better: 'less',
          ours: ends.map(({ ms }) => ms),
          reach: 6_000,
        },
        {
          name: `uncached reads a cycle on a real node, grace ${GRACE}`,
          unit: '',
          better: 'less',
          ours: ends.map(({ reads }) => reads),
          reach: 2,
          beyond: 0,
        },
        {
          name: "first good command after a kubelet's restart / kubectl exec",
          unit: 'ms',
          better: 'less',
          reach: 1.1,
          ours: restarts.map(({ ours }) => ours),
          theirs: restarts.map(({ theirs }) => theirs),
        },
      ];
    } finally {
      await api.close();
      await cluster.end();
    }
  },
});

interface Claimed {
  readonly id: string;
  readonly pod: string;
}

class PoolsOfNode {
  readonly #cluster: BenchCluster;
  readonly #replicas: BenchReplicas;
  readonly #api: ApiServer;

  constructor(cluster: BenchCluster, replicas: BenchReplicas, api: ApiServer) {
    this.#cluster = cluster;
    this.#replicas = replicas;
    this.#api = api;
  }

  async begin(): Promise<void> {
    const body = JSON.stringify({ name: TEMPLATE, templateName: TEMPLATE, replicas: 0 });
    const make = () => this.#service.answerTo({ method: 'POST', path: '/sandboxpools', body });
    await eventually(async () => (await make()).status === 201, 'the pool is made');
  }

  /** Seconds from the word that there be so many until they idle. */
  async fill(): Promise<number> {
    const began = performance.now();
    await this.#resize(PODS);
    await this.#service.untilIdle(TEMPLATE, PODS);
    const seconds = (performance.now() - began) / 1_000;
    await this.#resize(0);
    await this.#untilEmpty(this.#replicas.tenantNamespace);
    return seconds;
  }

  async fillRaw(): Promise<number> {
    const lane = this.#api.lane('background');
    const { namespace } = this.#cluster;
    const began = performance.now();
    await RawPods.fill(lane, { namespace, count: PODS, width: WRITERS, container });
    const seconds = (performance.now() - began) / 1_000;
    await RawPods.empty(lane, { namespace, count: PODS, width: WRITERS });
    await this.#untilEmpty(namespace);
    return seconds;
  }

  /** The p50 of an end, and what each took of reads. */
  async ends(): Promise<{ readonly ms: number; readonly reads: number }> {
    await this.#resize(ENDS);
    await this.#service.untilIdle(TEMPLATE, ENDS);
    const claimed: Claimed[] = [];
    while (claimed.length < ENDS) claimed.push(await this.#claim());
    await this.#resize(0);
    const watched = await PodEnds.begin(this.#api, this.#replicas.tenantNamespace);
    const before = await readsOf(this.#replicas);
    try {
      const ms = await timedInTurn(claimed, async ({ id, pod }) => {
        await this.#service.call({ method: 'DELETE', path: `/sandboxes/${id}` }, 200);
        await watched.until(pod);
      });
      await pause(LOOKED_MS);
      return { ms, reads: ((await readsOf(this.#replicas)) - before) / ENDS };
    } finally {
      watched.stop();
    }
  }

  /** Milliseconds from the start of a kubelet that was killed; both ask all the while. */
  async restart(): Promise<{ readonly ours: number; readonly theirs: number }> {
    const { controlPlane } = this.#cluster;
    await this.#resize(1);
    await this.#service.untilIdle(TEMPLATE, 1);
    const { id, pod } = await this.#claim();
    const ours = async (): Promise<boolean> => {
      const body = JSON.stringify({ command: ['true'] });
      return (
        (await this.#service.answerTo({ method: 'POST', path: `/sandboxes/${id}/exec`, body }))
          .status === 200
      );
    };
    const theirs = async (): Promise<boolean> =>
      (
        await controlPlane.kubectlAs('admin', [
          'exec',
          pod,
          '-n',
          this.#replicas.tenantNamespace,
          '--',
          'true',
        ])
      ).exitCode === 0;
    if (!(await ours()) || !(await theirs()))
      throw new Error('a command fails before the kubelet is killed');
    await controlPlane.realNode.kill('kubelet');
    const began = performance.now();
    await controlPlane.realNode.begin('kubelet');
    const first = async (isGood: () => Promise<boolean>, who: string): Promise<number> => {
      await eventually(isGood, `a command runs again by ${who}`);
      return performance.now() - began;
    };
    const [mine, other] = await Promise.all([first(ours, 'us'), first(theirs, 'kubectl')]);
    await this.#service.call({ method: 'DELETE', path: `/sandboxes/${id}` }, 200);
    return { ours: mine, theirs: other };
  }

  async #resize(replicas: number): Promise<void> {
    await this.#service.call(
      { method: 'PUT', path: `/sandboxpools/${TEMPLATE}`, body: JSON.stringify({ replicas }) },
      200,
    );
  }

  async #untilEmpty(namespace: string): Promise<void> {
    await this.#cluster.controlPlane.kubectl(
      'wait',
      '--for=delete',
      'pods',
      '--all',
      '-n',
      namespace,
      '--timeout=120s',
    );
  }

  async #claim(): Promise<Claimed> {
    const answer = await this.#service.call(
      { method: 'POST', path: '/sandboxes', body: JSON.stringify({ poolName: TEMPLATE }) },
      201,
    );
    const { sandbox } = JSON.parse(answer) as {
      readonly sandbox: { readonly sandboxId: string; readonly podName: string };
    };
    return { id: sandbox.sandboxId, pod: sandbox.podName };
  }

  get #service(): BenchReplicas['first']['service'] {
    return this.#replicas.first.service;
  }
}
