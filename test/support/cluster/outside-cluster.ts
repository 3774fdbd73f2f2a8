import { randomBytes } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Cluster,
  type ClusterAccess,
  manifestText,
  runKubectl,
} from '../../../local-cluster/control-plane/cluster.ts';
import { findPrograms } from '../../../local-cluster/control-plane/programs.ts';
import { clusterRights } from '../../../local-cluster/control-plane/sandpool-rights.ts';

/** An existing cluster. Tests use their own names, and `stop` removes them. */
class OutsideCluster extends Cluster {
  readonly #folder: string;
  readonly #made: readonly string[];

  constructor(
    access: ClusterAccess,
    {
      folder,
      made,
      ...place
    }: {
      readonly folder: string;
      readonly made: readonly string[];
      readonly server: string;
      readonly caPem: string;
    },
  ) {
    super(access, place);
    this.#folder = folder;
    this.#made = made;
  }

  override async stop(): Promise<void> {
    await this.removeNamespaces();
    await this.kubectl('delete', '--ignore-not-found', '--wait=false', ...this.#made);
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/**
 * The kubeconfig's user needs all rights. `sandpool` becomes a service account with the daemon's
 * rights.
 */
export const outsideCluster = async (kubeconfig: string): Promise<Cluster> => {
  const kubectl = findPrograms(['kubectl']).get('kubectl') ?? '';
  const folder = mkdtempSync(join(tmpdir(), 'outside-cluster-'));
  chmodSync(folder, 0o700);
  const ask = (...args: readonly string[]): string =>
    execFileSync(kubectl, [`--kubeconfig=${kubeconfig}`, ...args], { encoding: 'utf8' });
  const config = JSON.parse(
    ask('config', 'view', '--raw', '--minify', '--flatten', '-o', 'json'),
  ) as Kubeconfig;
  const { server = '', 'certificate-authority-data': ca = '' } = config.clusters[0]?.cluster ?? {};

  const namespace = `test-sandpool-${randomBytes(4).toString('hex')}`;
  const subject = { kind: 'ServiceAccount', name: 'sandpool', namespace };
  const rights = clusterRights(subject);
  const admin = join(folder, 'admin.kubeconfig');
  writeFileSync(admin, JSON.stringify(config), { mode: 0o600 });
  const manifests = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'sandpool', namespace } },
    ...rights,
  ];
  const { exitCode, stderr } = await runKubectl(
    kubectl,
    admin,
    ['apply', '-f', '-'],
    manifestText(manifests),
  );
  if (exitCode !== 0)
    throw new Error(
      `the cluster of TEST_KUBECONFIG takes no rights for sandpool: ${stderr.trim()}`,
    );
  const token = ask(
    'create',
    'token',
    'sandpool',
    '--namespace',
    namespace,
    '--duration=6h',
  ).trim();
  const sandpool = join(folder, 'sandpool.kubeconfig');
  writeFileSync(
    sandpool,
    JSON.stringify({
      ...config,
      users: config.users.map(({ name }) => ({ name, user: { token } })),
    }),
    { mode: 0o600 },
  );

  return new OutsideCluster(
    { kubectl, kubeconfigs: { admin, sandpool }, subject },
    {
      folder,
      server,
      caPem: Buffer.from(ca, 'base64').toString('utf8'),
      made: [
        `namespace/${namespace}`,
        'clusterrole/test-sandpool',
        'clusterrole/test-sandpool-tenant',
        'clusterrolebinding/test-sandpool',
      ],
    },
  );
};

interface Kubeconfig {
  readonly clusters: readonly {
    readonly cluster: { readonly server?: string; readonly 'certificate-authority-data'?: string };
  }[];
  readonly users: readonly { readonly name: string }[];
}
