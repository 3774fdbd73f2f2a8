import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, closeSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { NEVER_COMES_MS } from './eventually.ts';
import { endOfFile, lastLinesOf } from './kept-output.ts';
import { rememberChild } from './started-processes.ts';

export type NodePart = 'kubelet' | 'containerd';

/** `tls`: what the kubelet shows as a server, and by whom its clients are known. */
export interface RealNodePlace {
  readonly folder: string;
  /** From script/real-node. */
  readonly programs: string;
  readonly kubelet: string;
  /** For the user `system:node:localhost`. */
  readonly kubeconfig: string;
  readonly port: number;
  readonly tls: {
    readonly certFile: string;
    readonly keyFile: string;
    readonly clientCaFile: string;
  };
  /** In place of real-node/hold; for tests. */
  readonly hold?: string;
  /** For an order, and for the end; 60 s by default. */
  readonly patienceMs?: number;
}

/** The API server reaches it by this name. */
export const REAL_NODE = 'localhost';
/** On real nodes without a registry. `tools` has bash, coreutils, tar and Python. */
export const realNodeImage = (name: 'pause' | 'busybox' | 'tools'): string =>
  `sandpool.test/${name}:1`;

const HOLD = fileURLToPath(new URL('real-node/hold', import.meta.url));
const LOGS: readonly string[] = ['hold', 'containerd', 'kubelet'];
const LOG_LINES = 8;

/**
 * containerd and a kubelet on this machine, in namespaces of their own (real-node/hold). The
 * machine is restored at the end, also when this process is killed. There can be one at a time: its
 * Pods' network is 10.88.0.0/16.
 */
export class RealNode {
  readonly #place: RealNodePlace;
  #hold: ChildProcess | undefined;
  #answers: Interface | undefined;

  constructor(place: RealNodePlace) {
    this.#place = place;
  }

  /**
   * Resolves once both run; the API server reports later that the node is Ready. A rejection leaves
   * nothing.
   */
  async start(): Promise<void> {
    const { folder, programs, kubelet, hold: program = HOLD } = this.#place;
    mkdirSync(join(folder, 'cni'), { recursive: true, mode: 0o711 });
    mkdirSync(join(folder, 'volume-plugins'), { recursive: true });
    writeFileSync(join(folder, 'cni/10-ptp.conflist'), JSON.stringify(network(folder)));
    writeFileSync(join(folder, 'containerd.toml'), containerdConfig(this.#place));
    writeFileSync(join(folder, 'kubeconfig'), readFileSync(this.#place.kubeconfig), {
      mode: 0o600,
    });
    this.configure();
    const log = openSync(join(folder, 'hold.log'), 'a', 0o600);
    const hold = spawn(program, [folder, this.#cgroup, programs, kubelet], {
      cwd: '/',
      detached: true,
      stdio: ['pipe', 'pipe', log],
    });
    closeSync(log);
    hold.on('error', () => undefined); // see `answer`
    hold.stdin?.on('error', () => undefined);
    this.#hold = hold;
    for (const name of LOGS)
      rememberChild(`${name} of the real node`, hold, () => endOfFile(join(folder, `${name}.log`)));
    if (hold.stdout) this.#answers = createInterface({ input: hold.stdout });
    try {
      await this.#answer('ready');
    } catch (error) {
      await this.stop().catch(() => undefined); // report why it did not start
      throw error;
    }
  }

  /** Used from the kubelet's next start on. */
  configure(changes: object = {}): void {
    writeFileSync(
      join(this.#place.folder, 'kubelet.json'),
      JSON.stringify({ ...kubeletConfig(this.#place, this.#cgroup), ...changes }, undefined, 2),
    );
  }

  /** By SIGTERM. Containers stay. */
  async end(part: NodePart): Promise<void> {
    await this.#order('end', part);
  }
  /** Resolves once it has ended. */
  async kill(part: NodePart): Promise<void> {
    await this.#order('kill', part);
  }
  /** containerd then answers, the kubelet a moment later. */
  async begin(part: NodePart): Promise<void> {
    await this.#order('begin', part);
  }
  /** By SIGSTOP, until `goOn`. */
  async halt(part: NodePart): Promise<void> {
    await this.#order('stop', part);
  }
  async goOn(part: NodePart): Promise<void> {
    await this.#order('cont', part);
  }

  /**
   * Resolves once the machine is restored. Rejects if something is left; after a kill, the next
   * node of this machine restores it.
   */
  async stop(): Promise<void> {
    const hold = this.#hold;
    if (!hold) return;
    this.#hold = undefined;
    const ended = hasEnded(hold)
      ? undefined
      : once(hold, 'exit', { signal: AbortSignal.timeout(this.#patienceMs) });
    hold.stdin?.end();
    await ended?.catch(() => this.#killAll(hold));
    this.#answers?.close();
    if (hold.exitCode !== 0)
      throw new Error(`the real node did not end in order. ${this.lastWords()}`);
  }

  /** With rotated ones. */
  logFiles({
    namespace,
    name,
    uid,
    container,
  }: {
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
    readonly container: string;
  }): readonly string[] {
    return readdirSync(
      join(this.#place.folder, 'pod-logs', `${namespace}_${name}_${uid}`, container),
    );
  }

  /** The ends of its logs. */
  lastWords(): string {
    return LOGS.flatMap((name) => {
      const file = join(this.#place.folder, `${name}.log`);
      return [`${file} ends so:`, ...lastLines(file)];
    }).join('\n');
  }

  get #cgroup(): string {
    return `sandpool-node-${process.pid}`;
  }

  async #order(order: string, part: NodePart): Promise<void> {
    this.#hold?.stdin?.write(`${order} ${part}\n`);
    await this.#answer('done');
  }

  async #answer(wanted: string): Promise<void> {
    const [answers, hold] = [this.#answers, this.#hold];
    if (!answers || !hold) throw new Error('the real node is not running');
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, AbortSignal.timeout(this.#patienceMs)]);
    const line = await Promise.race([
      once(answers, 'line', { signal }).then(([text]) => String(text)),
      hasEnded(hold) ? 'it ended' : once(hold, 'exit', { signal }).then(() => 'it ended'),
    ]).catch((error: unknown) => String(error));
    over.abort();
    if (line !== wanted)
      throw new Error(`the real node did not do as told: ${line}. ${this.lastWords()}`);
  }

  get #patienceMs(): number {
    return this.#place.patienceMs ?? NEVER_COMES_MS;
  }

  /** Its group has everything outside of its namespaces; the rest ends with those. */
  async #killAll(hold: ChildProcess): Promise<void> {
    if (hasEnded(hold)) return;
    const ended = once(hold, 'exit');
    process.kill(-(hold.pid ?? 0), 'SIGKILL');
    await ended;
  }
}

const hasEnded = ({ pid, exitCode, signalCode }: ChildProcess): boolean =>
  pid === undefined || exitCode !== null || signalCode !== null;

const lastLines = (file: string): readonly string[] => {
  try {
    return lastLinesOf(endOfFile(file), LOG_LINES).map((line) => `  ${line}`);
  } catch {
    return ['  it is not there'];
  }
};

const RUNTIME_SOCKET = 'unix:///run/containerd/containerd.sock';

const kubeletConfig = ({ folder, port, tls }: RealNodePlace, cgroup: string): object => ({
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  address: '127.0.0.1',
  port,
  healthzPort: 0,
  readOnlyPort: 0,
  tlsCertFile: tls.certFile,
  tlsPrivateKeyFile: tls.keyFile,
  authentication: {
    anonymous: { enabled: false },
    webhook: { enabled: false },
    x509: { clientCAFile: tls.clientCaFile },
  },
  authorization: { mode: 'AlwaysAllow' },
  containerRuntimeEndpoint: RUNTIME_SOCKET,
  cgroupRoot: `/${cgroup}`,
  cgroupDriver: 'cgroupfs',
  cgroupsPerQOS: true,
  enforceNodeAllocatable: [],
  failCgroupV1: false,
  failSwapOn: false,
  oomScoreAdj: 0,
  makeIPTablesUtilChains: false,
  localStorageCapacityIsolation: false,
  evictionHard: {
    'memory.available': '50Mi',
    'nodefs.available': '1%',
    'imagefs.available': '1%',
    'nodefs.inodesFree': '1%',
  },
  imageGCHighThresholdPercent: 100,
  imageGCLowThresholdPercent: 99,
  imagePullCredentialsVerificationPolicy: 'NeverVerify',
  volumePluginDir: join(folder, 'volume-plugins'),
  podLogsDir: join(folder, 'pod-logs'),
  maxPods: 250,
  // A test can then see a log rotate.
  containerLogMaxSize: '256Ki',
  containerLogMaxFiles: 3,
  containerLogMonitorInterval: '3s',
  resolvConf: '',
  registerNode: true,
  // By default 10 s: late for a Pod that ends.
  nodeStatusUpdateFrequency: '5s',
  kubeAPIQPS: 200,
  kubeAPIBurst: 400,
});

const containerdConfig = ({ folder, programs }: RealNodePlace): string => `
version = 2
root = "${join(folder, 'containerd')}"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "${join(folder, 'opt')}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${realNodeImage('pause')}"
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${join(programs, 'root/usr/lib/cni')}"
    conf_dir = "${join(folder, 'cni')}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "${join(programs, 'root/usr/sbin/runc')}"
        SystemdCgroup = false
`;

/** Each Pod has its own link to this machine, and no other route. */
const network = (folder: string): object => ({
  cniVersion: '0.4.0',
  name: 'sandpool-node',
  plugins: [
    {
      type: 'ptp',
      ipMasq: false,
      mtu: 1_400,
      ipam: {
        type: 'host-local',
        dataDir: join(folder, 'addresses'),
        ranges: [[{ subnet: '10.88.0.0/16' }]],
        routes: [{ dst: '0.0.0.0/0' }],
      },
    },
  ],
});
