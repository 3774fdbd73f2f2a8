import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { containedBy, type ContainerImage } from './container-image.ts';
import { KeptOutput } from '../../../local-cluster/kept-output.ts';
import { rememberChild } from '../../../local-cluster/started-processes.ts';
import type { Cluster } from '../../../local-cluster/control-plane/cluster.ts';
import { eventually, NEVER_COMES_MS } from '../harness/eventually.ts';

/** Fields that a kubelet reads. */
export interface PodObject {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: {
    readonly serviceAccountName: string;
    readonly terminationGracePeriodSeconds: number;
    readonly securityContext: {
      readonly runAsUser: number;
      readonly runAsGroup: number;
      readonly fsGroup: number;
    };
    readonly containers: readonly Container[];
    readonly volumes: readonly Volume[];
  };
}
interface Container {
  readonly args: readonly string[];
  readonly env: readonly {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: { readonly fieldRef: { readonly fieldPath: string } };
  }[];
  readonly volumeMounts: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly readOnly?: boolean;
  }[];
  readonly securityContext: { readonly readOnlyRootFilesystem: boolean };
  readonly readinessProbe: Probe;
  readonly livenessProbe: Probe;
}
interface Probe {
  readonly httpGet: { readonly path: string };
}
interface Volume {
  readonly name: string;
  readonly configMap?: { readonly name: string };
  readonly secret?: {
    readonly secretName: string;
    readonly items?: readonly { readonly key: string; readonly path: string }[];
  };
  readonly emptyDir?: object;
  readonly projected?: object;
}

const KEPT_OUTPUT = 1 << 20;

/**
 * Really runs the first container of a simulated Pod as process 1: read-only files, the Pod's user,
 * arguments, variables, volumes and service account.
 */
export class DeployedReplica {
  readonly pod: PodObject;
  readonly #image: ContainerImage;
  readonly #folder: string;
  readonly #process: ChildProcess;
  readonly #output: KeptOutput;
  #pid = 0;

  private constructor(
    pod: PodObject,
    { image, folder }: { readonly image: ContainerImage; readonly folder: string },
    child: ChildProcess,
  ) {
    this.pod = pod;
    this.#image = image;
    this.#folder = folder;
    this.#process = child;
    this.#output = KeptOutput.of(KEPT_OUTPUT, child.stdout, child.stderr);
    rememberChild(`Pod ${pod.metadata.name}`, child, () => this.output);
    child.stdio[3]?.on('data', (chunk: Buffer) => {
      this.#pid ||= Number(/"child-pid": (\d+)/.exec(chunk.toString())?.[1] ?? 0);
    });
  }

  /** Resolves once it listens. `env`: differences of this machine from a cluster's network. */
  static async start(
    pod: PodObject,
    {
      cluster,
      image,
      env,
    }: {
      readonly cluster: Cluster;
      readonly image: ContainerImage;
      readonly env: Readonly<Record<string, string>>;
    },
  ): Promise<DeployedReplica> {
    const folder = mkdtempSync(join(tmpdir(), 'deployed-'));
    chmodSync(folder, 0o755);
    try {
      const [container] = pod.spec.containers;
      if (!container) throw new Error('the Pod has no container');
      const { runAsUser: uid, runAsGroup: gid, fsGroup } = pod.spec.securityContext;
      const contained = containedBy({
        user: { uid, gid, groups: [fsGroup] },
        workingDir: image.workingDir,
        binds: [
          '--info-fd',
          '3',
          '--as-pid-1',
          '--ro-bind',
          image.tree,
          image.place,
          ...(await mounted(pod, container, { cluster, folder })),
        ],
        env: {
          ...image.env,
          ...variablesOf(container, pod),
          KUBERNETES_SERVICE_HOST: new URL(cluster.server).hostname,
          KUBERNETES_SERVICE_PORT: new URL(cluster.server).port,
          ...env,
        },
      });
      const [program = '', ...args] = [...contained, ...image.entrypoint, ...container.args];
      const replica = new DeployedReplica(
        pod,
        { image, folder },
        spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe', 'pipe'] }),
      );
      await replica.#listening();
      return replica;
    } catch (error) {
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
      throw error;
    }
  }

  get output(): string {
    return this.#output.text;
  }
  get port(): number {
    return Number(/Sandpool is ready at https?:\/\/[\d.]+:(\d+)/.exec(this.output)?.[1] ?? 0);
  }
  get isRunning(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }
  get container(): Container {
    const [container] = this.pod.spec.containers;
    if (!container) throw new Error('the Pod has no container');
    return container;
  }

  /** Like `kubectl exec`. */
  async exec(args: readonly string[]): Promise<string> {
    const { entrypoint, workingDir, env } = this.#image;
    const { runAsUser: uid, runAsGroup: gid } = this.pod.spec.securityContext;
    const { stdout } = await promisify(execFile)(
      'nsenter',
      [
        ...['--target', String(this.#pid), '--user', '--mount', '--pid'],
        ...['--setuid', String(uid), '--setgid', String(gid)],
        ...[`--wdns=${workingDir}`, '--', ...entrypoint, ...args],
      ],
      {
        timeout: NEVER_COMES_MS,
        env: { ...env, PATH: `${dirname(process.execPath)}:/usr/bin:/bin` },
      },
    );
    return stdout;
  }

  signal(name: NodeJS.Signals): void {
    if (this.#pid > 0 && this.isRunning) process.kill(this.#pid, name);
  }

  /** Exit code; killed after the Pod's grace. */
  async ended(): Promise<number | null> {
    const timer = setTimeout(() => {
      this.signal('SIGKILL');
    }, this.pod.spec.terminationGracePeriodSeconds * 1_000);
    if (this.isRunning) await once(this.#process, 'close');
    clearTimeout(timer);
    return this.#process.exitCode;
  }

  async remove(): Promise<void> {
    this.signal('SIGKILL');
    this.#process.kill('SIGKILL');
    if (this.isRunning) await once(this.#process, 'close');
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  async #listening(): Promise<void> {
    try {
      await eventually(
        () => this.port > 0 || !this.isRunning,
        'the daemon listens',
        () => this.output.slice(-4_000),
      );
    } finally {
      if (this.port === 0) await this.remove();
    }
    if (!this.isRunning) throw new Error(`the daemon did not start: ${this.output.slice(-4_000)}`);
  }
}

const variablesOf = (
  { env }: Container,
  { metadata }: PodObject,
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    env.map(({ name, value, valueFrom }) => {
      if (valueFrom !== undefined && valueFrom.fieldRef.fieldPath !== 'metadata.name')
        throw new Error(`no stand-in for ${valueFrom.fieldRef.fieldPath}`);
      return [name, value ?? metadata.name];
    }),
  );

const mounted = async (
  pod: PodObject,
  { volumeMounts }: Container,
  { cluster, folder }: { readonly cluster: Cluster; readonly folder: string },
): Promise<readonly string[]> => {
  const binds: string[] = [];
  for (const { name, mountPath } of volumeMounts) {
    const volume = pod.spec.volumes.find((candidate) => candidate.name === name);
    if (!volume) throw new Error(`there is no volume ${name}`);
    if (volume.emptyDir) binds.push('--tmpfs', mountPath);
    else
      binds.push(
        '--ro-bind',
        written(join(folder, name), await filesOf(volume, pod, cluster), pod),
        mountPath,
      );
  }
  return binds;
};

const filesOf = async (
  { name, configMap, secret, projected }: Volume,
  { metadata: { namespace }, spec: { serviceAccountName } }: PodObject,
  cluster: Cluster,
): Promise<ReadonlyMap<string, string>> => {
  if (projected) {
    // a kubelet's token, authority and namespace of the service account
    const token = (
      await cluster.kubectl('create', 'token', serviceAccountName, '-n', namespace, '--duration=1h')
    ).trim();
    return new Map([
      ['token', token],
      ['ca.crt', cluster.caPem],
      ['namespace', namespace],
    ]);
  }
  const [kind, object] = configMap
    ? (['configmap', configMap.name] as const)
    : (['secret', secret?.secretName ?? ''] as const);
  const { data } = JSON.parse(
    await cluster.kubectl('get', kind, object, '-n', namespace, '-o', 'json'),
  ) as { readonly data: Readonly<Record<string, string>> };
  const items = secret?.items ?? Object.keys(data).map((key) => ({ key, path: key }));
  return new Map(
    items.map(({ key, path }) => {
      const text = data[key];
      if (text === undefined) throw new Error(`the volume ${name} lacks ${key}`);
      return [path, secret ? Buffer.from(text, 'base64').toString() : text];
    }),
  );
};

/** For the Pod's group if the tests run as root. */
const written = (
  folder: string,
  files: ReadonlyMap<string, string>,
  {
    spec: {
      securityContext: { fsGroup },
    },
  }: PodObject,
): string => {
  mkdirSync(folder);
  for (const [name, text] of files) {
    writeFileSync(join(folder, name), text, { mode: 0o440 });
    if (process.getuid?.() === 0) chownSync(join(folder, name), 0, fsGroup);
  }
  return folder;
};
