import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Authority } from './certificates.ts';

/** In the order of their start. */
export const COMPONENTS = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kwok',
] as const;
export type Component = (typeof COMPONENTS)[number];

/** Below one folder, on 127.0.0.1; `kubelet` is kwok's. */
export interface Layout {
  readonly folder: string;
  readonly ports: {
    readonly etcd: number;
    readonly etcdPeer: number;
    readonly server: number;
    readonly kubelet: number;
    readonly realKubelet: number;
  };
  readonly authority: Authority;
  readonly serving: { readonly certFile: string; readonly keyFile: string };
  readonly kubeletClient: { readonly certFile: string; readonly keyFile: string };
  readonly frontProxyClient: { readonly certFile: string; readonly keyFile: string };
  readonly serviceAccount: { readonly publicFile: string; readonly privateFile: string };
  readonly tokenFile: string;
  readonly kwokConfigFile: string;
  /** For `kube-controller-manager`, `kube-scheduler` and `kwok`. */
  readonly kubeconfig: (user: string) => string;
  /** Etcd waits for the disk, for figures. */
  readonly durable: boolean;
  /** Etcd keeps every revision, as JSON. */
  readonly legible: boolean;
  /** A kubelet renews its lease; kwok does not. */
  readonly leases: boolean;
}

export const argumentsOf = (component: Component, layout: Layout): readonly string[] => {
  switch (component) {
    case 'etcd':
      return etcd(layout);
    case 'kube-apiserver':
      return apiServer(layout);
    case 'kube-controller-manager':
      return controllerManager(layout);
    case 'kube-scheduler':
      return scheduler(layout);
    case 'kwok':
      return [`--kubeconfig=${layout.kubeconfig('kwok')}`, `--config=${layout.kwokConfigFile}`];
  }
};

/** Etcd refuses every write beyond it; 2 GiB by default. */
const MOST_STORED = 8 * 2 ** 30;

const etcd = ({ folder, ports, durable, legible }: Layout): readonly string[] => {
  const [client, peer] = [`http://127.0.0.1:${ports.etcd}`, `http://127.0.0.1:${ports.etcdPeer}`];
  return [
    '--name=etcd',
    `--data-dir=${join(folder, 'etcd')}`,
    '--log-level=warn',
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=etcd=${peer}`,
    ...(durable ? [] : ['--unsafe-no-fsync']),
    ...(legible ? [`--quota-backend-bytes=${MOST_STORED}`] : []),
  ];
};

const apiServer = (layout: Layout): readonly string[] => {
  const { authority, serving, kubeletClient, frontProxyClient, serviceAccount } = layout;
  return [
    `--etcd-servers=http://127.0.0.1:${layout.ports.etcd}`,
    ...(layout.legible
      ? ['--storage-media-type=application/json', '--etcd-compaction-interval=0']
      : []),
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${layout.ports.server}`,
    // A loopback address is refused in Endpoints.
    '--endpoint-reconciler-type=none',
    '--service-cluster-ip-range=10.0.0.0/24',
    `--tls-cert-file=${serving.certFile}`,
    `--tls-private-key-file=${serving.keyFile}`,
    `--client-ca-file=${authority.certFile}`,
    `--token-auth-file=${layout.tokenFile}`,
    '--authorization-mode=Node,RBAC',
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${serviceAccount.publicFile}`,
    `--service-account-signing-key-file=${serviceAccount.privateFile}`,
    '--kubelet-preferred-address-types=Hostname,InternalIP',
    `--kubelet-certificate-authority=${authority.certFile}`,
    `--kubelet-client-certificate=${kubeletClient.certFile}`,
    `--kubelet-client-key=${kubeletClient.keyFile}`,
    `--requestheader-client-ca-file=${authority.certFile}`,
    '--requestheader-allowed-names=front-proxy',
    '--requestheader-username-headers=X-Remote-User',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    `--proxy-client-cert-file=${frontProxyClient.certFile}`,
    `--proxy-client-key-file=${frontProxyClient.keyFile}`,
  ];
};

const controllerManager = ({
  kubeconfig,
  authority,
  serviceAccount,
  leases,
}: Layout): readonly string[] => [
  `--kubeconfig=${kubeconfig('kube-controller-manager')}`,
  '--secure-port=0',
  '--leader-elect=false',
  '--use-service-account-credentials',
  `--root-ca-file=${authority.certFile}`,
  `--service-account-private-key-file=${serviceAccount.privateFile}`,
  '--kube-api-qps=1000',
  '--kube-api-burst=2000',
  // A busy machine must not have its Pods evicted.
  ...(leases ? [] : ['--node-monitor-grace-period=1h']),
];

const scheduler = ({ folder, kubeconfig }: Layout): readonly string[] => {
  const file = join(folder, 'kube-scheduler.json');
  writeFileSync(
    file,
    JSON.stringify({
      apiVersion: 'kubescheduler.config.k8s.io/v1',
      kind: 'KubeSchedulerConfiguration',
      // The default of 50 requests a second caps it at some 70 Pods a second.
      clientConnection: { kubeconfig: kubeconfig('kube-scheduler'), qps: 2_000, burst: 4_000 },
      leaderElection: { leaderElect: false },
    }),
  );
  return [`--config=${file}`, '--secure-port=0'];
};
