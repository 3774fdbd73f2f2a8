import { expect } from 'chai';
import { apiServer } from '../../src/k8s/api/api-client.ts';
import type { ApiServer } from '../../src/k8s/api/api-calls.ts';
import { identityOf } from '../../src/k8s/api/api-objects.ts';
import { readClusterAccess, type ClusterAccess } from '../../src/k8s/api/cluster-access.ts';
import { Reflector } from '../../src/k8s/api/reflector.ts';
import { Mirror } from '../../src/model/mirror/mirror.ts';
import type { MirrorChange } from '../../src/model/mirror/mirror-terms.ts';
import { eventually } from '../support/harness/eventually.ts';
import { FaultProxy } from '../support/harness/fault-proxy.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

interface ConfigMap {
  readonly data: { readonly a: string };
}

describe('the reflector with a real API server', function () {
  const controlPlane = onTheControlPlane();
  let access: ClusterAccess;
  let server: ApiServer;
  let proxy: FaultProxy;
  let through: ApiServer;
  let path: string;
  let reflector: Reflector<string>;
  let changes: MirrorChange<string>[];
  const api = () => server.lane('background');
  const made = new Set<string>();
  const put = async (name: string, a: string): Promise<string> => {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { a } };
    const { resourceVersion } = identityOf(
      await (made.has(keyOf(name))
        ? api().replace(`${path}/${name}`, body)
        : api().create(path, body)),
    );
    made.add(keyOf(name));
    return resourceVersion;
  };
  const keyOf = (name: string): string => `${path.split('/')[4] ?? ''}/${name}`;
  const shows = (name: string, a: string | undefined): Promise<void> =>
    eventually(() => reflector.get(keyOf(name)) === a, `${name} is ${a ?? 'gone'}`);

  before(async () => {
    access = await readClusterAccess({ kubeconfig: controlPlane().kubeconfig('admin') }, quietLog);
    server = apiServer({ metrics: silentMetrics, access, version: '0' });
  });
  after(() => server.close());

  beforeEach(async () => {
    path = `/api/v1/namespaces/${await controlPlane().namespace()}/configmaps`;
    const { hostname, port } = access.server;
    proxy = new FaultProxy({ host: hostname, port: Number(port) });
    const proxied = new URL(access.server.href);
    proxied.port = String(await proxy.start());
    through = apiServer({
      metrics: silentMetrics,
      access: { ...access, server: proxied },
      version: '0',
    });
    changes = [];
  });
  /** Nothing is heard for 3 s at most where all is well and the machine has time. */
  const started = async (silenceMs = 12_000): Promise<void> => {
    reflector = new Reflector<string>({
      api: through.lane('background'),
      watches: through.lane('watches'),
      path,
      log: quietLog,
      trim: (object) => (object as ConfigMap).data.a,
      mirror: new Mirror({
        report: (change) => {
          changes.push(change);
        },
      }),
      tuning: {
        pageSize: 20,
        timings: { silenceMs, watchSeconds: 5, firstPauseMs: 20, longestPauseMs: 200 },
      },
    });
    reflector.start();
    await reflector.synced();
  };
  afterEach(async () => {
    await reflector?.stop();
    await through.close();
    await proxy.stop();
  });

  it('shows initial objects, creations and deletions, across restarts of the watch', async () => {
    await Promise.all(Array.from({ length: 45 }, (_, i) => put(`m${i}`, 'old')));
    await started();
    expect(reflector.size).to.equal(45);
    expect(reflector.counters).to.include({ lists: 1, restarts: 0 });

    for (let round = 0; round < 8; round += 1) {
      await put('m1', `v${round}`);
      await reflector.caughtUp(30_000);
      expect(reflector.get(keyOf('m1'))).to.equal(`v${round}`);
    }
    await api().remove(`${path}/m2`);
    await reflector.caughtUp(30_000);
    expect(reflector.get(keyOf('m2'))).to.equal(undefined);

    expect(
      changes.filter(({ key }) => key === keyOf('m1')).map(({ record }) => record),
    ).to.deep.equal(['old', ...Array.from({ length: 8 }, (_, round) => `v${round}`)]);
    expect(reflector.counters).to.include({ lists: 1, restarts: 0, mishaps: 0 });
  });

  it('stays fresh without changes', async () => {
    await started();
    const until = performance.now() + 15_000;

    await eventually(() => {
      expect(reflector.stale).to.equal(undefined);
      return performance.now() > until;
    }, 'fifteen seconds');

    expect(reflector.counters).to.include({ lists: 1, restarts: 0 });
  });

  it('resumes after broken and silent connections', async () => {
    await started(6_000);
    await put('m', '0');
    for (let round = 1; round < 4; round += 1) {
      proxy.cut();
      await put('m', String(round));
      await shows('m', String(round));
    }

    proxy.state = 'hold';
    await put('m', 'held');
    await eventually(() => reflector.stale !== undefined, 'stale');
    proxy.state = 'pass';
    await shows('m', 'held');

    await eventually(() => reflector.stale === undefined, 'fresh');
    expect(reflector.counters).to.include({ lists: 1 });
    expect(changes.map(({ record }) => record)).to.deep.equal(['0', '1', '2', '3', 'held']);
  });

  it('recovers after a kill of the API server and etcd', async () => {
    await started();
    await put('m', '0');
    await shows('m', '0');

    await controlPlane().kill('kube-apiserver');
    await controlPlane().begin('kube-apiserver');
    await eventually(
      async () =>
        put('m', '1').then(
          () => true,
          () => false,
        ),
      'written',
    );
    await shows('m', '1');
    await controlPlane().kill('etcd');
    await controlPlane().begin('etcd');
    await eventually(
      async () =>
        put('m', '2').then(
          () => true,
          () => false,
        ),
      'written',
    );
    await shows('m', '2');
  });
});
