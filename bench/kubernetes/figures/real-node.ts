import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { eventually } from '../../../local-cluster/eventually.ts';
import { realNodeImage } from '../../../local-cluster/real-node.ts';
import { silentLog } from '../../../src/contracts/log.ts';
import { apiServer } from '../../../src/k8s/api/api-client.ts';
import type { ApiServer } from '../../../src/k8s/api/api-calls.ts';
import { readClusterAccess } from '../../../src/k8s/api/cluster-access.ts';
import { ask, type Side } from '../../figures/endpoint.ts';
import { inPairs, type Figure } from '../../figure.ts';
import { quantile } from '../../statistics.ts';
import { startCluster, type BenchCluster, type BenchReplicas } from '../cluster.ts';
import { PodEnds } from '../pod-ends.ts';

const TEMPLATE = 'site';
const PORT = 8_000;
const COMMANDS = 20;
const PAGES = 300;
/**
 * Turns of pages before any counts: until the daemon's code is compiled, as kubectl's is from the
 * start.
 */
const WARM_UP = 10;
const ENDS = 3;
const GRACE_S = 5;
/**
 * As in the chart's template `web`: it closes its connection after each answer. Ends at SIGTERM.
 */
const SERVER = `
import http.server, os
class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words): pass
os.makedirs("/tmp/www", exist_ok=True)
os.chdir("/tmp/www")
open("index.html", "w").write("hello")
http.server.ThreadingHTTPServer(("127.0.0.1", ${PORT}), Handler).serve_forever()`;
import { silentMetrics } from '../../../src/contracts/metrics.ts';

const template = {
  apiVersion: 'sandpool.dev/v1alpha1',
  kind: 'SandboxTemplate',
  metadata: { name: TEMPLATE },
  spec: {
    containers: [
      {
        name: 'main',
        image: realNodeImage('tools'),
        command: ['python3', '-c', SERVER],
        resources: {
          requests: { cpu: '10m', memory: '16Mi' },
          limits: { cpu: '500m', memory: '64Mi' },
        },
      },
    ],
    endpoints: [{ name: 'web', port: PORT }],
    startupTimeout: '60s',
  },
};

/**
 * Commands, pages and ends of real containers. Needs TEST_REAL_NODE, what script/real-node names.
 */
export const realNode = (programs: string): Figure => ({
  name: 'real-node',
  about:
    "on a kubelet, containerd and runc: a command against `kubectl exec`, a page of an endpoint against `kubectl port-forward`, an end against a Pod's",
  run: async (bench) => {
    const cluster = await startCluster(bench, { realNode: programs });
    const api = apiServer({
      metrics: silentMetrics,
      access: await readClusterAccess(
        { kubeconfig: cluster.controlPlane.kubeconfig('admin') },
        silentLog,
      ),
      version: 'bench',
    });
    try {
      await cluster.controlPlane.apply(template);
      const replicas = await cluster.startReplicas(1, {
        SANDPOOL_KUBERNETES_TERMINATION_GRACE: `${GRACE_S}s`,
      });
      const node = new Node(cluster, replicas, api);
      await node.fill();
      const commands = await inPairs(bench, {
        ours: () => node.commands(),
        theirs: () => node.kubectlCommands(),
      });
      for (let turn = 0; turn < WARM_UP; turn += 1) await node.pages();
      const pages = await inPairs(bench, {
        ours: () => node.pages(),
        theirs: () => node.forwardedPages(),
      });
      const ends = await inPairs(bench, { ours: () => node.ends(), theirs: () => node.rawEnds() });
      return [
        {
          name: 'command on a real node, p50 / kubectl exec',
          unit: 'ms',
          better: 'less',
          reach: 0.5,
          beyond: 0.3,
          ...commands,
        },
        {
          name: 'page of an endpoint on a real node, p50 / kubectl port-forward',
          unit: 'ms',
          better: 'less',
          reach: 0.7,
          beyond: 0.5,
          ...pages,
        },
        {
          name: 'DELETE until its Pod is gone, main heeds SIGTERM / a Pod deleted',
          unit: 'ms',
          better: 'less',
          reach: 1.1,
          ...ends,
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

class Node {
  readonly #cluster: BenchCluster;
  readonly #replicas: BenchReplicas;
  readonly #api: ApiServer;
  #made = 0;
  #kept: Claimed | undefined;

  constructor(cluster: BenchCluster, replicas: BenchReplicas, api: ApiServer) {
    this.#cluster = cluster;
    this.#replicas = replicas;
    this.#api = api;
  }

  async fill(): Promise<void> {
    const { service } = this.#replicas.first;
    await eventually(async () => {
      const body = JSON.stringify({ name: TEMPLATE, templateName: TEMPLATE, replicas: 1 });
      return (
        (await service.answerTo({ method: 'POST', path: '/sandboxpools', body })).status === 201
      );
    }, 'the pool is made');
    const kept = await this.#claim();
    this.#kept = kept;
    await eventually(
      async () =>
        (await service.answerTo({ method: 'GET', path: this.#page(kept) })).status === 200,
      'its server listens',
    );
  }

  async commands(): Promise<number> {
    const { service } = this.#replicas.first;
    const path = `/sandboxes/${this.#sandbox.id}/exec`;
    return await timed(COMMANDS, async () => {
      const answer = await service.call(
        { method: 'POST', path, body: JSON.stringify({ command: ['true'] }) },
        200,
      );
      if (!answer.includes('"exitCode":0')) throw new Error(`a command failed: ${answer}`);
    });
  }

  async kubectlCommands(): Promise<number> {
    const { controlPlane } = this.#cluster;
    return await timed(COMMANDS, async () => {
      await execFileOf(
        controlPlane.kubectlProgram,
        [...this.#kubectl, 'exec', this.#sandbox.pod, '--', 'true'],
        { timeout: 60_000 },
      );
    });
  }

  async pages(): Promise<number> {
    const {
      service: { port },
    } = this.#replicas.first;
    return quantile(
      await ask(
        {
          port,
          head: `/sandboxes/${this.#sandbox.id}/endpoints/web`,
          key: this.#replicas.tenantKey,
        },
        '/',
        PAGES,
      ),
      0.5,
    );
  }

  /** Its start is not measured. */
  async forwardedPages(): Promise<number> {
    const { controlPlane } = this.#cluster;
    const forward = spawn(
      controlPlane.kubectlProgram,
      [...this.#kubectl, 'port-forward', this.#sandbox.pod, `:${PORT}`],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    try {
      const side: Side = { port: await portOf(forward), head: '' };
      await ask(side, '/', 2);
      return quantile(await ask(side, '/', PAGES), 0.5);
    } finally {
      const ended = once(forward, 'exit');
      if (forward.exitCode === null && forward.kill()) await ended;
    }
  }

  async ends(): Promise<number> {
    const {
      first: { service },
      tenantNamespace,
    } = this.#replicas;
    await this.#resize(ENDS + 1);
    await service.untilIdle(TEMPLATE, ENDS);
    const watched = await PodEnds.begin(this.#api, tenantNamespace);
    const claimed: Claimed[] = [];
    while (claimed.length < ENDS) claimed.push(await this.#claim());
    await this.#resize(1); // so that no replacement starts meanwhile
    try {
      return await timedInTurn(claimed, async ({ id, pod }) => {
        await service.call({ method: 'DELETE', path: `/sandboxes/${id}` }, 200);
        await watched.until(pod);
      });
    } finally {
      watched.stop();
    }
  }

  /** Of Pods that nobody owns, otherwise the same. */
  async rawEnds(): Promise<number> {
    const { tenantNamespace } = this.#replicas;
    const { namespace, controlPlane } = this.#cluster;
    const lane = this.#api.lane('background');
    const { spec } = (await lane.get(
      `/api/v1/namespaces/${tenantNamespace}/pods/${this.#sandbox.pod}`,
    )) as { readonly spec: Readonly<Record<string, unknown>> };
    const names = Array.from({ length: ENDS }, () => `raw-${this.#made++}`);
    const { nodeName: _, ...free } = spec;
    await controlPlane.apply(
      names.map((name) => ({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace },
        spec: free,
      })),
    );
    await controlPlane.kubectl(
      'wait',
      '--for=condition=Ready',
      ...names.map((name) => `pod/${name}`),
      '-n',
      namespace,
      '--timeout=60s',
    );
    const watched = await PodEnds.begin(this.#api, namespace);
    try {
      return await timedInTurn(names, async (name) => {
        await lane.remove(`/api/v1/namespaces/${namespace}/pods/${name}`, {
          gracePeriodSeconds: GRACE_S,
        });
        await watched.until(name);
      });
    } finally {
      watched.stop();
    }
  }

  async #resize(replicas: number): Promise<void> {
    await this.#replicas.first.service.call(
      { method: 'PUT', path: `/sandboxpools/${TEMPLATE}`, body: JSON.stringify({ replicas }) },
      200,
    );
  }

  async #claim(): Promise<Claimed> {
    const { service } = this.#replicas.first;
    await service.untilIdle(TEMPLATE, 1);
    const answer = await service.call(
      { method: 'POST', path: '/sandboxes', body: JSON.stringify({ poolName: TEMPLATE }) },
      201,
    );
    const { sandbox } = JSON.parse(answer) as {
      readonly sandbox: { readonly sandboxId: string; readonly podName: string };
    };
    return { id: sandbox.sandboxId, pod: sandbox.podName };
  }

  get #sandbox(): Claimed {
    if (!this.#kept) throw new Error('it is filled first');
    return this.#kept;
  }

  get #kubectl(): readonly string[] {
    const kubeconfig = this.#cluster.controlPlane.kubeconfig('admin');
    return [
      `--kubeconfig=${kubeconfig}`,
      `--cache-dir=${kubeconfig}.cache`,
      '--namespace',
      this.#replicas.tenantNamespace,
    ];
  }

  #page({ id }: Claimed): string {
    return `/sandboxes/${id}/endpoints/web/`;
  }
}

const execFileOf = promisify(execFile);

/** The p50 in ms. */
const timed = async (count: number, run: () => Promise<void>): Promise<number> =>
  await timedInTurn(Array.from({ length: count }), run);

/** The p50 in ms. */
export const timedInTurn = async <T>(
  each: readonly T[],
  run: (one: T) => Promise<void>,
): Promise<number> => {
  const times: number[] = [];
  for (const one of each) {
    const began = performance.now();
    await run(one);
    times.push(performance.now() - began);
  }
  return quantile(times, 0.5);
};

/** Where kubectl listens. */
const portOf = async ({ stdout }: ChildProcess): Promise<number> => {
  if (!stdout) throw new Error('it prints');
  for await (const line of createInterface({ input: stdout })) {
    const port = /127\.0\.0\.1:(\d+)/.exec(line)?.[1];
    if (port === undefined) continue;
    stdout.resume(); // it tells of each connection
    return Number(port);
  }
  throw new Error('kubectl port-forward ended');
};
