import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { eventually, NEVER_COMES_MS } from '../eventually.ts';
import { type RightsSubject, tenantNamespace } from './sandpool-rights.ts';

/** `sandpool` has the daemon's rights, in namespaces of `namespace`. */
export type ClusterUser = 'admin' | 'sandpool';

export interface KubectlAnswer {
  /** undefined after a signal or the deadline */
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ClusterAccess {
  readonly kubectl: string;
  readonly kubeconfigs: Readonly<Record<ClusterUser, string>>;
  /** Has the rights of `sandpool`. */
  readonly subject: RightsSubject;
}

/** Longer than any `kubectl wait` here. */
const KUBECTL_MS = 180_000;
const MADE_WITHIN = `--timeout=${NEVER_COMES_MS / 1_000}s`;

export abstract class Cluster {
  readonly #namespaces: string[] = [];
  readonly #access: ClusterAccess;
  readonly server: string;
  readonly caPem: string;

  constructor(access: ClusterAccess, place: { readonly server: string; readonly caPem: string }) {
    this.#access = access;
    this.server = place.server;
    this.caPem = place.caPem;
  }

  get kubectlProgram(): string {
    return this.#access.kubectl;
  }

  abstract stop(): Promise<void>;

  /** As JSON. */
  kubeconfig(user: ClusterUser): string {
    return this.#access.kubeconfigs[user];
  }

  /** As `admin`. Rejects with its message. */
  async kubectl(...args: readonly string[]): Promise<string> {
    return this.#printed(args, await this.kubectlAs('admin', args));
  }

  /** As `admin`; null removes a field. */
  async patch(object: readonly string[], change: object): Promise<void> {
    await this.kubectl('patch', ...object, ...asMergePatch(change));
  }

  async kubectlAs(user: ClusterUser, args: readonly string[], input = ''): Promise<KubectlAnswer> {
    return runKubectl(this.#access.kubectl, this.kubeconfig(user), args, input);
  }

  /** Server-side apply, as `admin`. */
  async apply(manifests: string | object | readonly object[]): Promise<void> {
    const args = ['apply', '--server-side', '--force-conflicts', '-f', '-'];
    this.#printed(args, await this.kubectlAs('admin', args, manifestText(manifests)));
  }

  /** As the chart makes a tenant's namespace. Pods can be made at once, also by `sandpool`. */
  async namespace(name = `test-${randomBytes(4).toString('hex')}`): Promise<string> {
    this.#namespaces.push(name);
    await this.apply(tenantNamespace(name, this.#access.subject));
    await this.kubectl('wait', '--for=create', 'serviceaccount/default', '-n', name, MADE_WITHIN);
    let answer: KubectlAnswer | undefined;
    await eventually(
      async () => {
        const asked = ['auth', 'can-i', 'create', 'pods', '-n', name];
        answer = await this.kubectlAs('sandpool', asked);
        return answer.exitCode === 0;
      },
      `the API server knows the rights in ${name}`,
      () => answer,
    );
    return name;
  }

  /** Does not wait for the end. */
  async removeNamespaces(): Promise<void> {
    const names = this.#namespaces.splice(0);
    if (names.length > 0)
      await this.kubectl('delete', 'namespace', '--ignore-not-found', '--wait=false', ...names);
  }

  #printed(args: readonly string[], { exitCode, stdout, stderr }: KubectlAnswer): string {
    if (exitCode !== 0)
      throw new Error(
        `kubectl ${args.join(' ')} ended with ${exitCode ?? 'a signal'}: ${stderr.trim()}`,
      );
    return stdout;
  }
}

export const runKubectl = (
  program: string,
  kubeconfig: string,
  args: readonly string[],
  input: string,
): Promise<KubectlAnswer> =>
  new Promise((resolve, reject) => {
    const options = {
      timeout: KUBECTL_MS,
      killSignal: 'SIGKILL',
      maxBuffer: 64 * 2 ** 20,
    } as const;
    const child = execFile(
      program,
      [`--kubeconfig=${kubeconfig}`, `--cache-dir=${kubeconfig}.cache`, ...args],
      options,
      (error, stdout, stderr) => {
        const exitCode = error ? (error.code ?? undefined) : 0;
        if (typeof exitCode === 'string')
          reject(new Error(`kubectl did not run, or printed too much: ${exitCode}`));
        else resolve({ exitCode, stdout, stderr });
      },
    );
    child.stdin?.on('error', () => undefined); // it ended without reading
    child.stdin?.end(input);
  });

export const asMergePatch = (change: object): readonly string[] => [
  '--type=merge',
  '-p',
  JSON.stringify(change),
];

export const manifestText = (manifests: string | object | readonly object[]): string =>
  typeof manifests === 'string'
    ? manifests
    : JSON.stringify(
        Array.isArray(manifests) ? { apiVersion: 'v1', kind: 'List', items: manifests } : manifests,
      );

/** By a token or a client certificate. */
export const kubeconfigText = (
  place: { readonly server: string; readonly caFile: string },
  user: object,
): string =>
  JSON.stringify(
    {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: 'test',
          cluster: {
            server: place.server,
            'certificate-authority-data': readFileSync(place.caFile).toString('base64'),
          },
        },
      ],
      users: [{ name: 'user', user }],
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'user' } }],
      'current-context': 'test',
    },
    undefined,
    2,
  );
