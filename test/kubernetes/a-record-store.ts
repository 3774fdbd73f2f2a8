import { apiServer } from '../../src/k8s/api/api-client.ts';
import type { ApiServer } from '../../src/k8s/api/api-calls.ts';
import { listPageOf } from '../../src/k8s/api/api-objects.ts';
import { readClusterAccess } from '../../src/k8s/api/cluster-access.ts';
import {
  KubernetesRecordStore,
  type KubernetesRecordStoreDeps,
} from '../../src/k8s/records/record-store.ts';
import { collectionPath, objectPath, type ResourceObject } from '../../src/k8s/api/resource.ts';
import { ServerClock } from '../../src/k8s/api/server-clock.ts';
import type { Cluster, ClusterUser } from '../../local-cluster/control-plane/cluster.ts';
import { installCustomResources } from '../../local-cluster/custom-resources.ts';
import { grantsAll } from '../support/fakes/grants-all.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { testSeals } from '../support/builders/test-seals.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

const PLURALS = [
  'sandboxenvs',
  'sandboxpools',
  'sandboxtemplates',
  'apikeys',
  'approvals',
  'userquotas',
  'workerclusters',
];

export const anApiOf = async (
  cluster: Cluster,
  user: ClusterUser,
  clock?: ServerClock,
): Promise<ApiServer> =>
  apiServer({
    metrics: silentMetrics,
    access: await readClusterAccess({ kubeconfig: cluster.kubeconfig(user) }, quietLog),
    version: '0',
    clock,
  });

/** The kinds, and the tenants' namespaces that suites of records expect. */
export const prepareForRecords = async (cluster: Cluster): Promise<void> => {
  await installCustomResources(cluster);
  for (const name of ['alpha', 'beta']) await cluster.namespace(name);
};

export const removeAllRecords = async (admin: ApiServer): Promise<void> => {
  const api = admin.lane('background');
  for (const plural of PLURALS) {
    const { items } = listPageOf(await api.list(collectionPath(plural), {}));
    for (const item of items)
      await api.remove(objectPath(plural, (item as ResourceObject).metadata));
  }
};

/** A store as a replica has one, under the daemon's own rights. */
export const aRecordStore = async (
  cluster: Cluster,
  {
    lookups,
    ...part
  }: Partial<Omit<KubernetesRecordStoreDeps, 'lookups'>> & {
    readonly lookups?: Partial<KubernetesRecordStoreDeps['lookups']>;
  } = {},
): Promise<{ store: KubernetesRecordStore; close(): Promise<void> }> => {
  const clock = new ServerClock();
  const api = await anApiOf(cluster, 'sandpool', clock);
  await api.lane('claims').get('/version');
  const store = new KubernetesRecordStore({
    metrics: silentMetrics,
    api,
    log: quietLog,
    outdated: () => undefined,
    grants: grantsAll,
    seals: testSeals,
    now: () => clock.now(),
    lookups: {
      check: () => undefined,
      instanceType: () => undefined,
      teamOf: (namespace) => namespace,
      clusterId: 'local',
      ...lookups,
    },
    ...part,
  });
  return {
    store,
    close: async () => {
      await store.stop();
      await api.close();
    },
  };
};
