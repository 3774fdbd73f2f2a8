import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { formatApiKey, newApiKeyText } from '../src/model/api-key-text.ts';
import { SandpoolClient } from '../src/cli/client/sandpool-client.ts';
import { tenantKey } from '../src/model/tenant.ts';
import { newFleetKey } from '../src/fleet/link/fleet-keys.ts';
import { readPidFile } from '../src/daemon/process/pid-file.ts';
import type { RedisSettings } from '../src/redis/settings.ts';
import type { Cluster } from './control-plane/cluster.ts';
import { freePorts } from './control-plane/free-ports.ts';
import { installCustomResources } from './custom-resources.ts';
import { KeptOutput } from './kept-output.ts';
import { rememberChild } from './started-processes.ts';
import { knownAsUnused } from './unused-quotas.ts';
import { markOf, watchedFolder } from './watched-folder.ts';
import { NEVER_COMES_MS } from './eventually.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const KEPT_OUTPUT = 32 * 2 ** 20;
const KEPT_STDOUT = 2 ** 16;

export interface ReplicasOptions {
  readonly cluster: Cluster;
  readonly redis: RedisSettings;
  /** 3 by default. */
  readonly count?: number;
  /** For all. */
  readonly env?: Readonly<Record<string, string>>;
  /** For one, by index; overrides `env`. */
  readonly own?: (index: number) => ReplicaOwn;
  /** Prefix of namespaces; random by default. */
  readonly namespacePrefix?: string;
}

/** For links with faults, and for clocks. */
export interface ReplicaOwn {
  readonly env?: Readonly<Record<string, string>>;
  /** Folder of another build. */
  readonly root?: string;
}

/** `start` after `kill` (kill -9) uses the same port. */
export class Replica {
  readonly name: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly #folder: string;
  #process: ChildProcess | undefined;
  #out = new KeptOutput(KEPT_STDOUT);
  readonly #err = new KeptOutput(KEPT_OUTPUT);
  #port = 0;

  constructor(name: string, env: Readonly<Record<string, string>>) {
    this.name = name;
    this.#env = env;
    this.#folder = watchedFolder(name);
  }

  get port(): number {
    return this.#port;
  }
  get dataDir(): string {
    return this.#folder;
  }
  get pid(): number | undefined {
    return this.#process?.pid;
  }
  get isRunning(): boolean {
    return (
      this.#process !== undefined &&
      this.#process.exitCode === null &&
      this.#process.signalCode === null
    );
  }
  get metricsAddress(): string {
    return readPidFile(this.#folder)?.metricsAddress ?? '';
  }
  get log(): string {
    return this.#err.text;
  }

  /** Resolves once it is ready; rejects with its output. */
  async start(own: ReplicaOwn = {}): Promise<void> {
    const { root = ROOT } = own;
    // Reserved while the replica is down.
    if (this.#port === 0) this.#port = (await freePorts(1))[0] ?? 0;
    const child = spawn(
      process.execPath,
      [join(root, 'dist/cli/main.js'), 'serve', '--config', join(root, 'config/kubernetes.yaml')],
      {
        cwd: root,
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          PATH: process.env['PATH'] ?? '',
          HOME: this.#folder,
          SANDPOOL_DATA_DIR: this.#folder,
          SANDPOOL_REPLICA: this.name,
          SANDPOOL_LISTEN: `127.0.0.1:${this.#port}`,
          SANDPOOL_METRICS_LISTEN: '127.0.0.1:0',
          SANDPOOL_COMPATIBLE_API_LISTEN: 'none',
          SANDPOOL_LOG_LEVEL: 'info',
          SANDPOOL_SHUTDOWN_DELAY: '0s',
          ...this.#env,
          ...own.env,
          ...markOf(this.#folder),
        },
      },
    );
    this.#process = child;
    this.#out = KeptOutput.of(KEPT_STDOUT, child.stdout);
    child.stderr.on('data', (chunk: Buffer) => {
      this.#err.add(chunk.toString());
    });
    rememberChild(this.name, child);
    const deadline = performance.now() + NEVER_COMES_MS;
    while (!this.#out.text.includes('Sandpool is ready')) {
      if (child.exitCode !== null || child.signalCode !== null || performance.now() > deadline) {
        child.kill('SIGKILL');
        throw new Error(
          `${this.name} did not start (exit code ${child.exitCode}): ${this.#out.text}${this.log.slice(-4_000)}`,
        );
      }
      const signal = AbortSignal.timeout(1_000);
      await Promise.race([
        once(child.stdout, 'data', { signal }),
        once(child, 'exit', { signal }),
      ]).catch(() => undefined);
    }
    this.#port = Number(new URL(readPidFile(this.#folder)?.address ?? '').port);
  }

  client(key: string): SandpoolClient {
    return new SandpoolClient({ server: `http://127.0.0.1:${this.#port}`, apiKey: key });
  }

  signal(name: NodeJS.Signals): void {
    this.#process?.kill(name);
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** Resolves with the exit code. */
  async stop(): Promise<number | null> {
    return await this.#end('SIGTERM');
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#process;
    this.#process = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null)
      return child?.exitCode ?? null;
    const ended = once(child, 'exit');
    child.kill('SIGCONT');
    child.kill(signal);
    await ended;
    return child.exitCode;
  }
}

/** Processes of the built daemon. */
export class Replicas {
  readonly list: readonly Replica[];
  readonly adminKey: string;
  readonly pepper: Buffer;
  readonly namespacePrefix: string;
  readonly #cluster: Cluster;
  readonly #redis: RedisSettings;
  readonly #secretsDir: string;
  readonly #namespaces = new Set<string>();
  readonly #tenants = new Set<string>();

  private constructor({
    cluster,
    redis,
    count = 3,
    env = {},
    own = () => ({}),
    namespacePrefix = `test-${randomBytes(3).toString('hex')}-`,
  }: ReplicasOptions) {
    [this.#cluster, this.#redis] = [cluster, redis];
    this.namespacePrefix = namespacePrefix;
    this.#secretsDir = watchedFolder('secrets');
    this.adminKey = formatApiKey(newApiKeyText(randomBytes));
    this.pepper = randomBytes(32);
    writeFileSync(join(this.#secretsDir, 'pepper'), this.pepper.toString('hex'), { mode: 0o600 });
    writeFileSync(join(this.#secretsDir, 'admin.key'), `${this.adminKey}\n`, { mode: 0o600 });
    writeFileSync(join(this.#secretsDir, 'fleet.key'), newFleetKey().privateKeyPem, {
      mode: 0o600,
    });
    const settings = {
      SANDPOOL_KUBERNETES_KUBECONFIG: cluster.kubeconfig('sandpool'),
      SANDPOOL_KUBERNETES_TERMINATION_GRACE: '0s',
      SANDPOOL_SECRETS_DIR: this.#secretsDir,
      SANDPOOL_NAMESPACE_PATTERN: `${this.namespacePrefix}{team}`,
      ...redisEnv(redis, this.#secretsDir),
      ...env,
    };
    this.list = Array.from(
      { length: count },
      (_, n) => new Replica(`replica-${n}`, { ...settings, ...own(n).env }),
    );
  }

  /** Resolves once all are ready. */
  static async start(options: ReplicasOptions): Promise<Replicas> {
    await installCustomResources(options.cluster);
    const replicas = new Replicas(options);
    try {
      await replicas.#namespace('default');
      await Promise.all(replicas.list.map((replica) => replica.start()));
      return replicas;
    } catch (error) {
      await replicas.stop();
      throw error;
    }
  }

  replica(index: number): Replica {
    const replica = this.list[index];
    if (!replica) throw new Error(`there is no replica ${index}`);
    return replica;
  }

  async #namespace(team: string): Promise<void> {
    this.#namespaces.add(await this.#cluster.namespace(this.namespaceOf(team)));
  }

  namespaceOf(team: string): string {
    return `${this.namespacePrefix}${team}`;
  }

  /** Key of a new user. The replicas know that the user has used nothing, unless `isUncounted`. */
  async tenant(
    team: string,
    user: string,
    { isUncounted = false }: { readonly isUncounted?: boolean } = {},
  ): Promise<string> {
    await this.#namespace(team);
    const tenant = { namespace: this.namespaceOf(team), team, user };
    if (!isUncounted && !this.#tenants.has(tenantKey(tenant)))
      await knownAsUnused(this.#redis, tenant);
    this.#tenants.add(tenantKey(tenant));
    const client = this.replica(0).client(this.adminKey);
    try {
      return (await client.call('createApiKeyForTenant', { body: { team, user } })).apiKey;
    } finally {
      client.close();
    }
  }

  /** Removes what other replicas on the cluster must not find. */
  async stop(): Promise<void> {
    await Promise.all(this.list.map((replica) => replica.stop()));
    for (const namespace of this.#namespaces)
      await this.#cluster.kubectl(
        'delete',
        'sandboxenvs,sandboxpools,sandboxes,apikeys,approvals,userquotas,pods',
        '--all',
        '--wait=false',
        '-n',
        namespace,
      );
    await this.#cluster.kubectl('delete', 'workerclusters', '--all', '--wait=false');
    for (const replica of this.list) replica.remove();
    rmSync(this.#secretsDir, { recursive: true, force: true });
  }
}

/** Its Pods do nothing. */
export const aPodTemplate = (name: string, part: object = {}): object => ({
  apiVersion: 'sandpool.dev/v1alpha1',
  kind: 'SandboxTemplate',
  metadata: { name },
  spec: {
    containers: [
      {
        name: 'main',
        image: 'registry.invalid/sandbox:1',
        command: ['sleep', 'infinity'],
        resources: {
          requests: { cpu: '10m', memory: '16Mi' },
          limits: { cpu: '100m', memory: '64Mi' },
        },
      },
    ],
    ...part,
  },
});

const redisEnv = (
  { urls, cluster, username, password, ca, prefix }: RedisSettings,
  folder: string,
): Readonly<Record<string, string>> => {
  mkdirSync(folder, { recursive: true });
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  return {
    SANDPOOL_REDIS_URLS: urls.join(','),
    SANDPOOL_REDIS_MODE: cluster ? 'cluster' : 'standalone',
    SANDPOOL_REDIS_PREFIX: prefix,
    ...(username === undefined ? {} : { SANDPOOL_REDIS_USERNAME: username }),
    ...(password === undefined
      ? {}
      : { SANDPOOL_REDIS_PASSWORD_FILE: file('redis.password', password) }),
    ...(ca === undefined ? {} : { SANDPOOL_REDIS_CA_FILE: file('redis.ca', ca) }),
  };
};
