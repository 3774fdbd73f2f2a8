import {
  OutcomeUnknown,
  type ExecOutcome,
  type ExecRequest,
} from '../../../src/contracts/sandbox-driver.ts';
import { apiServer } from '../../../src/k8s/api/api-client.ts';
import type { ApiServer } from '../../../src/k8s/api/api-calls.ts';
import { readClusterAccess, type ClusterAccess } from '../../../src/k8s/api/cluster-access.ts';
import type { PodTarget } from '../../../src/k8s/sandboxes/pods/pod-presence.ts';
import { readAgents } from '../../../src/k8s/sandboxes/pods/agent-programs.ts';
import { agentMap } from '../../../src/k8s/sandboxes/pods/pod-agent.ts';
import { PodStreams } from '../../../src/k8s/streams/pod-streams.ts';
import { aPod, type PodProgram } from '../builders/a-pod.ts';
import type { Cluster } from '../../../local-cluster/control-plane/cluster.ts';
import { FaultProxy } from '../harness/fault-proxy.ts';
import { quietLog } from '../fakes/quiet-log.ts';
import { silentMetrics } from '../../../src/contracts/metrics.ts';
import { NEVER_COMES_MS } from '../harness/eventually.ts';

const MOST_TRIES = 5;

export interface StreamsTerms {
  readonly pingEveryMs?: number;
  readonly silenceMs?: number;
  /** The proxy would read at full speed, whatever its reader does. */
  readonly direct?: boolean;
  readonly program?: PodProgram;
}

/** Streams of Pods with the daemon's rights, over a breakable link. */
export class PodStreamsUnderTest {
  readonly streams: PodStreams;
  readonly proxy: FaultProxy;
  readonly #cluster: Cluster;
  readonly #server: ApiServer;
  readonly #namespace: string;
  readonly #program: PodProgram | undefined;

  private constructor(
    cluster: Cluster,
    namespace: string,
    parts: {
      readonly proxy: FaultProxy;
      readonly access: ClusterAccess;
      readonly pingEveryMs: number;
      readonly silenceMs: number;
      readonly program: PodProgram | undefined;
    },
  ) {
    const { access, proxy, pingEveryMs, silenceMs } = parts;
    this.#cluster = cluster;
    this.#namespace = namespace;
    this.#program = parts.program;
    this.proxy = proxy;
    this.#server = apiServer({ metrics: silentMetrics, access, version: 'test' });
    this.streams = new PodStreams({
      access,
      api: this.#server.lane('claims'),
      log: quietLog,
      version: 'test',
      pingEveryMs,
      silenceMs,
    });
  }

  static async start(
    cluster: Cluster,
    { pingEveryMs = 15_000, silenceMs = 120_000, direct = false, program }: StreamsTerms = {},
  ): Promise<PodStreamsUnderTest> {
    const real = await readClusterAccess({ kubeconfig: cluster.kubeconfig('sandpool') }, quietLog);
    const proxy = new FaultProxy({ host: real.server.hostname, port: Number(real.server.port) });
    const port = await proxy.start();
    const access = direct ? real : { ...real, server: new URL(`https://127.0.0.1:${port}`) };
    return new PodStreamsUnderTest(cluster, await cluster.namespace(), {
      proxy,
      access,
      pingEveryMs,
      silenceMs,
      program,
    });
  }

  async pod(name: string): Promise<PodTarget> {
    const namespace = this.#namespace;
    const { own, programs } = readAgents();
    const agent = this.#program && programs.get(own);
    if (agent) await this.#cluster.apply(agentMap(agent, namespace));
    await this.#cluster.apply(aPod({ name, namespace, program: this.#program, agent }));
    await this.#cluster.kubectl(
      'wait',
      '--for=condition=Ready',
      `pod/${name}`,
      '-n',
      namespace,
      '--timeout=60s',
    );
    const uid = await this.#cluster.kubectl(
      'get',
      'pod',
      name,
      '-n',
      namespace,
      '-o',
      'jsonpath={.metadata.uid}',
    );
    return { namespace, name, uid, container: 'main' };
  }

  async remove({ name, namespace }: PodTarget): Promise<void> {
    await this.#cluster.kubectl('delete', 'pod', name, '-n', namespace, '--wait');
  }

  exec(
    pod: PodTarget,
    argv: readonly string[],
    part: Partial<ExecRequest> = {},
    signal = new AbortController().signal,
  ): Promise<ExecOutcome> {
    return this.streams.exec(
      pod,
      { argv, timeoutMs: NEVER_COMES_MS, outputLimit: 1 << 20, ...part },
      signal,
    );
  }

  /** Repeats a broken-off `exec`, so the command must be repeatable. */
  async outcome(...command: Parameters<PodStreamsUnderTest['exec']>): Promise<ExecOutcome> {
    for (let tries = 1; ; tries += 1)
      try {
        return await this.exec(...command);
      } catch (error) {
        if (!(error instanceof OutcomeUnknown) || tries === MOST_TRIES) throw error;
      }
  }

  async sh(pod: PodTarget, script: string, part: Partial<ExecRequest> = {}): Promise<string> {
    return String((await this.outcome(pod, ['sh', '-c', script], part)).stdout);
  }

  /** Whether such a process runs in any of kwok's Pods. */
  async runs(pod: PodTarget, words: string): Promise<boolean> {
    return (await this.sh(pod, 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " "')).includes(
      `${words} `,
    );
  }

  async close(): Promise<void> {
    this.proxy.state = 'pass';
    await this.streams.stop();
    await this.#server.close();
    await this.proxy.stop();
  }
}
