import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import {
  type Authority,
  issueCertificate,
  makeAuthority,
  makeKeyPair,
} from './control-plane/certificates.ts';
import { Cluster, type ClusterUser, kubeconfigText } from './control-plane/cluster.ts';
import {
  argumentsOf,
  type Component,
  COMPONENTS,
  type Layout,
} from './control-plane/components.ts';
import { freePorts } from './control-plane/free-ports.ts';
import { kwokConfig, NODE_ANNOTATION } from './control-plane/kwok-config.ts';
import { Processes } from './control-plane/processes.ts';
import { findPrograms } from './control-plane/programs.ts';
import { clusterRights } from './control-plane/sandpool-rights.ts';
import { eventually, NEVER_COMES_MS } from './eventually.ts';
import { REAL_NODE, RealNode } from './real-node.ts';
import { ARCHITECTURE_LABEL } from '../src/k8s/sandboxes/pods/agent-programs.ts';
import { ownArchitecture } from '../src/lib/own-architecture.ts';
import { builtAgent } from './built-agent.ts';
import { watchedFolder } from './watched-folder.ts';

export interface ControlPlaneOptions {
  /** Played by kwok: `node-0`, `node-1`, …; 3 by default, none beside a real one. */
  readonly nodes?: number;
  /** Adds a real node, from the folder of script/real-node. */
  readonly realNode?: string;
  /** Etcd waits for the disk. */
  readonly durable?: boolean;
  /** Etcd keeps every revision, as JSON. */
  readonly legible?: boolean;
}

/** With their groups. */
const USERS: Readonly<Record<string, readonly string[]>> = {
  admin: ['system:masters'],
  sandpool: [],
  'kube-controller-manager': [],
  'kube-scheduler': [],
  kwok: ['system:masters'],
};
const SYSTEM_NAMES: Readonly<Record<string, string>> = {
  'kube-controller-manager': 'system:kube-controller-manager',
  'kube-scheduler': 'system:kube-scheduler',
};

/**
 * A Kubernetes cluster on 127.0.0.1: real etcd, API server, controller manager and scheduler, and
 * kwok, which plays nodes and Pods (kwok-config.ts). Commands of exec are processes of this
 * machine. Nothing is left when this process ends, however it ends.
 */
export class ControlPlane extends Cluster {
  readonly #layout: Layout;
  readonly #processes: Processes;
  readonly #programs: ReadonlyMap<string, string>;
  readonly #forwards = new Map<number, number>();
  #realNode: RealNode | undefined;

  private constructor(layout: Layout, processes: Processes, programs: ReadonlyMap<string, string>) {
    const kubeconfigs: Readonly<Record<ClusterUser, string>> = {
      admin: layout.kubeconfig('admin'),
      sandpool: layout.kubeconfig('sandpool'),
    };
    const subject = { kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'sandpool' };
    super(
      { kubectl: programs.get('kubectl') ?? '', kubeconfigs, subject },
      { server: serverOf(layout), caPem: readFileSync(layout.authority.certFile, 'utf8') },
    );
    [this.#layout, this.#processes, this.#programs] = [layout, processes, programs];
  }

  /** Resolves once Pods would run; a rejection leaves nothing. */
  static async start({
    realNode,
    nodes = realNode === undefined ? 3 : 0,
    durable = false,
    legible = false,
  }: ControlPlaneOptions = {}): Promise<ControlPlane> {
    const programs = findPrograms();
    const folder = watchedFolder('control-plane');
    const processes = new Processes(folder);
    try {
      const controlPlane = new ControlPlane(
        await lay(folder, { durable, legible, leases: realNode !== undefined }),
        processes,
        programs,
      );
      await controlPlane.#startAll(nodes);
      if (realNode !== undefined) await controlPlane.#startRealNode(realNode);
      return controlPlane;
    } catch (error) {
      for (const component of COMPONENTS.toReversed()) await processes.end(component, 'SIGKILL');
      await processes.close();
      throw error;
    }
  }

  /** By a client certificate. */
  async certificateKubeconfig(user: ClusterUser): Promise<string> {
    const groups = USERS[user]?.[0];
    return this.#writeCertificateKubeconfig(
      user,
      await issueCertificate(this.#layout.authority, `client-${user}`, {
        name: user,
        organization: groups,
      }),
    );
  }

  #writeCertificateKubeconfig(
    name: string,
    { certFile, keyFile }: { readonly certFile: string; readonly keyFile: string },
  ): string {
    const { authority, folder } = this.#layout;
    const file = join(folder, `${name}-certificate.kubeconfig`);
    const credential = {
      'client-certificate-data': readFileSync(certFile).toString('base64'),
      'client-key-data': readFileSync(keyFile).toString('base64'),
    };
    writeFileSync(
      file,
      kubeconfigText({ server: this.server, caFile: authority.certFile }, credential),
      { mode: 0o600 },
    );
    return file;
  }

  /** Resolves once it is ready. */
  async restart(component: Component, signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    await this.#processes.end(component, signal);
    await this.begin(component);
  }

  /** After SIGKILL, resolves once it has ended; `begin` brings it back. */
  async kill(component: Component, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (signal === 'SIGKILL') await this.#processes.end(component, signal);
    else this.#processes.signal(component, signal);
  }

  /** Resolves once it is ready. */
  async begin(component: Component): Promise<void> {
    const program = this.#programs.get(component) ?? '';
    const args = argumentsOf(component, this.#layout);
    if (component !== 'kwok') this.#processes.start(component, program, args);
    else {
      const root = join(this.#layout.folder, 'kwok-root');
      mkdirSync(root, { recursive: true });
      this.#processes.start(component, WITH_AGENT, [builtAgent(), root, program, ...args]);
    }
    const isReady = this.#readiness(component);
    if (isReady) await this.#until(component, isReady);
  }

  get etcd(): string {
    return `http://127.0.0.1:${this.#layout.ports.etcd}`;
  }

  /** Good for all that listens on 127.0.0.1. */
  get serving(): Layout['serving'] {
    return this.#layout.serving;
  }

  /** As a crash would leave it. */
  copyStore(): void {
    const [data, copy] = this.#store();
    rmSync(copy, { recursive: true, force: true });
    this.#processes.signal('etcd', 'SIGSTOP');
    try {
      cpSync(data, copy, { recursive: true });
    } finally {
      this.#processes.signal('etcd', 'SIGCONT');
    }
  }

  /** While etcd is not running. */
  restoreStore(): void {
    const [data, copy] = this.#store();
    rmSync(data, { recursive: true, force: true });
    cpSync(copy, data, { recursive: true });
  }

  #store(): readonly [data: string, copy: string] {
    return [join(this.#layout.folder, 'etcd'), join(this.#layout.folder, 'etcd-copy')];
  }

  pidOf(component: Component): number | undefined {
    return this.#processes.pidOf(component);
  }

  async addNode(name: string): Promise<void> {
    await this.apply(aNode(name));
  }

  /** In the log of every container. */
  print(
    line: string,
    {
      stream = 'stdout',
      time = new Date(),
    }: { readonly stream?: 'stdout' | 'stderr'; readonly time?: Date } = {},
  ): void {
    appendFileSync(
      containerLog(this.#layout.folder),
      `${time.toISOString().replace('Z', '000000Z')} ${stream} F ${line}\n`,
    );
  }

  forgetPrinted(): void {
    truncateSync(containerLog(this.#layout.folder));
  }

  /** A port-forward to this port of any Pod leads to the local port. */
  async forward(podPort: number, localPort: number): Promise<void> {
    this.#forwards.set(podPort, localPort);
    await this.#writeKwokConfig();
    await this.restart('kwok');
  }

  /** Throws without one. */
  get realNode(): RealNode {
    if (!this.#realNode) throw new Error('this control plane has no real node');
    return this.#realNode;
  }

  override async stop(): Promise<void> {
    try {
      await this.#realNode?.stop();
    } finally {
      await this.#stopSimulated();
    }
  }

  async #stopSimulated(): Promise<void> {
    for (const component of COMPONENTS.toReversed()) await this.#processes.end(component);
    await this.#processes.close();
  }

  async #startAll(nodes: number): Promise<void> {
    await this.#writeKwokConfig();
    for (const component of COMPONENTS) await this.begin(component);
    await this.apply([
      ...Array.from({ length: nodes }, (_, index) => aNode(`node-${index}`)),
      ...clusterRights({ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'sandpool' }),
    ]);
    const become = async (component: Component, ...args: readonly string[]): Promise<void> => {
      const { exitCode, stderr } = await this.kubectlAs('admin', [
        'wait',
        ...args,
        '--timeout=120s',
      ]);
      if (exitCode !== 0) throw this.#notReady(component, stderr.trim());
    };
    await become(
      'kube-controller-manager',
      '--for=create',
      'serviceaccount/default',
      '--namespace=default',
    );
    if (nodes > 0) await become('kwok', '--for=condition=Ready', 'nodes', '--all');
  }

  async #startRealNode(programs: string): Promise<void> {
    const {
      authority,
      folder,
      ports: { realKubelet: port },
    } = this.#layout;
    const [client, serving] = await Promise.all([
      issueCertificate(authority, 'real-node', {
        name: `system:node:${REAL_NODE}`,
        organization: 'system:nodes',
      }),
      issueCertificate(authority, 'real-node-serving', {
        name: REAL_NODE,
        hosts: [`DNS:${REAL_NODE}`, 'IP:127.0.0.1'],
      }),
    ]);
    const own = join(folder, 'real-node');
    mkdirSync(own, { mode: 0o711 });
    const kubeconfig = this.#writeCertificateKubeconfig('real-node', client);
    this.#realNode = new RealNode({
      folder: own,
      programs,
      kubeconfig,
      port,
      kubelet: findPrograms(['kubelet']).get('kubelet') ?? '',
      tls: { ...serving, clientCaFile: authority.certFile },
    });
    try {
      await this.#realNode.start();
      for (const wait of ['--for=create', '--for=condition=Ready'])
        await this.kubectl('wait', wait, `node/${REAL_NODE}`, '--timeout=120s');
    } catch (error) {
      const words = this.#realNode.lastWords();
      await this.#realNode.stop().catch(() => undefined);
      throw new Error(`the real node did not become Ready. ${words}`, { cause: error });
    }
  }

  async #writeKwokConfig(): Promise<void> {
    const { folder, ports, serving, kwokConfigFile } = this.#layout;
    const workFolder = join(folder, 'exec');
    mkdirSync(workFolder, { recursive: true });
    if (process.getuid?.() === 0) chownSync(workFolder, 65_534, 65_534);
    appendFileSync(containerLog(folder), '');
    writeFileSync(
      kwokConfigFile,
      kwokConfig({
        port: ports.kubelet,
        ...serving,
        logFile: containerLog(folder),
        workFolder,
        forwards: this.#forwards,
      }),
    );
  }

  /** The controller manager and the scheduler have nothing to ask. */
  #readiness(component: Component): (() => Promise<boolean>) | undefined {
    const { ports, authority } = this.#layout;
    const ca = readFileSync(authority.certFile);
    switch (component) {
      case 'etcd':
        return () => answersOk(`http://127.0.0.1:${ports.etcd}/health`);
      case 'kube-apiserver':
        return () => answersOk(`${this.server}/readyz`, ca);
      case 'kwok':
        return () => answersOk(`https://127.0.0.1:${ports.kubelet}/healthz`, ca);
      default:
        return undefined;
    }
  }

  async #until(component: Component, isReady: () => Promise<boolean>): Promise<void> {
    const isSo = async (): Promise<boolean> => {
      if (!this.#processes.isAlive(component)) throw this.#notReady(component, 'it ended');
      return isReady();
    };
    try {
      await eventually(isSo, `${component} is ready`);
    } catch (error) {
      throw this.#processes.isAlive(component)
        ? this.#notReady(component, `it was not ready within ${NEVER_COMES_MS / 1_000} s`)
        : error;
    }
  }

  #notReady(component: Component, what: string): Error {
    return new Error(
      `${component} did not start: ${what}. ${this.#processes.lastWordsOf(component)}`,
    );
  }
}

const WITH_AGENT = join(import.meta.dirname, 'control-plane/with-agent');

const serverOf = ({ ports }: Layout): string => `https://127.0.0.1:${ports.server}`;
const containerLog = (folder: string): string => join(folder, 'container.log');

const aNode = (name: string): object => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: {
    name,
    annotations: NODE_ANNOTATION,
    labels: {
      'kubernetes.io/hostname': name,
      'kubernetes.io/os': 'linux',
      [ARCHITECTURE_LABEL]: ownArchitecture(),
    },
  },
});

/** Commands of exec can enter the folder, but only this user its files. */
const lay = async (
  folder: string,
  kept: Pick<Layout, 'durable' | 'legible' | 'leases'>,
): Promise<Layout> => {
  chmodSync(folder, 0o711);
  const [etcd = 0, etcdPeer = 0, server = 0, kubelet = 0, realKubelet = 0] = await freePorts(5);
  const secrets = join(folder, 'certificates');
  mkdirSync(secrets, { mode: 0o700 });
  const authority = await makeAuthority(secrets);
  const [serving, kubeletClient, frontProxyClient, serviceAccount] = await Promise.all([
    issueCertificate(authority, 'serving', {
      name: 'kube-apiserver',
      hosts: [
        'DNS:kubernetes',
        'DNS:kubernetes.default.svc',
        'DNS:localhost',
        'IP:127.0.0.1',
        'IP:10.0.0.1',
      ],
    }),
    issueCertificate(authority, 'kubelet-client', {
      name: 'kube-apiserver-kubelet-client',
      organization: 'system:masters',
    }),
    issueCertificate(authority, 'front-proxy', { name: 'front-proxy' }),
    makeKeyPair(secrets),
  ]);
  const tokens = writeTokens(folder, { server: `https://127.0.0.1:${server}`, authority });
  return {
    folder,
    ...kept,
    authority,
    serving,
    kubeletClient,
    frontProxyClient,
    serviceAccount,
    ports: { etcd, etcdPeer, server, kubelet, realKubelet },
    tokenFile: tokens.file,
    kwokConfigFile: join(folder, 'kwok.yaml'),
    kubeconfig: tokens.kubeconfig,
  };
};

const writeTokens = (
  folder: string,
  { server, authority }: { readonly server: string; readonly authority: Authority },
): { readonly file: string; readonly kubeconfig: (user: string) => string } => {
  const file = join(folder, 'tokens.csv');
  const kubeconfig = (user: string): string => join(folder, `${user}.kubeconfig`);
  const lines = Object.entries(USERS).map(([user, groups]) => {
    const token = randomBytes(16).toString('hex');
    writeFileSync(
      kubeconfig(user),
      kubeconfigText({ server, caFile: authority.certFile }, { token }),
      { mode: 0o600 },
    );
    return `${token},${SYSTEM_NAMES[user] ?? user},${user},"${groups.join(',')}"\n`;
  });
  writeFileSync(file, lines.join(''), { mode: 0o600 });
  return { file, kubeconfig };
};

/** Within a second. */
const answersOk = async (url: string, ca?: Buffer): Promise<boolean> => {
  const request = ca
    ? httpsRequest(url, { ca, timeout: 1_000, agent: false })
    : httpRequest(url, { timeout: 1_000, agent: false });
  request.on('timeout', () => request.destroy(new Error('no answer')));
  const answered: Promise<{ statusCode?: number; resume(): void }[]> = once(request, 'response');
  request.end();
  try {
    const [response] = await answered;
    response?.resume();
    return response?.statusCode === 200;
  } catch {
    return false;
  }
};
