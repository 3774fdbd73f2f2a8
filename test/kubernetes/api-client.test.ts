import { expect } from 'chai';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { apiServer } from '../../src/k8s/api/api-client.ts';
import type { ApiServer } from '../../src/k8s/api/api-calls.ts';
import { ApiRefused, NotSent } from '../../src/k8s/api/api-errors.ts';
import { identityOf } from '../../src/k8s/api/api-objects.ts';
import { readClusterAccess } from '../../src/k8s/api/cluster-access.ts';
import { ServerClock } from '../../src/k8s/api/server-clock.ts';
import { versionsNow } from '../../src/k8s/api/versions-now.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { rejection } from '../support/harness/rejection.ts';
import { onTheCluster, onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

describe('the API client with a real API server', function () {
  const cluster = onTheCluster();
  const clock = new ServerClock();
  let server: ApiServer;
  let path: string;
  const api = () => server.lane('claims');
  const aMap = (name: string, metadata: object = {}) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, ...metadata },
    data: { a: '1' },
  });
  const open = async (kubeconfig: string): Promise<ApiServer> =>
    apiServer({
      metrics: silentMetrics,
      access: await readClusterAccess({ kubeconfig }, quietLog),
      version: '0',
      clock,
    });

  before(async () => {
    server = await open(cluster().kubeconfig('admin'));
    path = `/api/v1/namespaces/${await cluster().namespace()}/configmaps`;
  });
  after(() => server.close());

  it('creates, reads, replaces, patches, lists and removes objects', async () => {
    const made = identityOf(await api().create(path, aMap('one', { labels: { l: 'x' } })));
    expect(identityOf(await api().get(`${path}/one`))).to.deep.equal(made);

    const replaced = await api().replace(`${path}/one`, {
      ...aMap('one', { resourceVersion: made.resourceVersion, labels: { l: 'x' } }),
      data: { a: '2' },
    });
    const patched = await api().patch(`${path}/one`, {
      data: { b: '3' },
    });
    expect([replaced, patched].map((object) => (object as { data: unknown }).data)).to.deep.equal([
      { a: '2' },
      { a: '2', b: '3' },
    ]);
    const { items } = (await api().list(path, { labelSelector: 'l=x', limit: 10 })) as {
      items: unknown[];
    };
    expect(items.map(identityOf)).to.deep.equal([identityOf(patched)]);
    await api().remove(`${path}/one`, {
      uid: made.uid,
      resourceVersion: identityOf(patched).resourceVersion,
    });
    expect(await rejection(api().get(`${path}/one`))).to.include({
      status: 404,
      reason: 'NotFound',
    });
  });

  it('reads the current list of an empty and a filled collection', async () => {
    const label = { path, labelSelector: 'of=this-test' };
    const empty = await versionsNow(api(), label, 30_000);
    const made = identityOf(
      await api().create(path, aMap('listed', { labels: { of: 'this-test' } })),
    );

    expect([...empty.versions]).to.deep.equal([]);
    expect([...(await versionsNow(api(), label, 30_000)).versions]).to.deep.equal([
      [made.key, made.resourceVersion],
    ]);
  });

  it('is refused if the object has changed, was replaced, exists or is gone', async () => {
    const first = identityOf(await api().create(path, aMap('two')));
    const second = identityOf(
      await api().replace(`${path}/two`, {
        ...aMap('two', { resourceVersion: first.resourceVersion }),
        data: { a: '2' },
      }),
    );
    const refusals = [
      await rejection(
        api().replace(`${path}/two`, aMap('two', { resourceVersion: first.resourceVersion })),
      ),
      await rejection(api().remove(`${path}/two`, { resourceVersion: first.resourceVersion })),
      await rejection(api().remove(`${path}/two`, { uid: '00000000-0000-4000-8000-000000000000' })),
      await rejection(api().create(path, aMap('two'))),
      await rejection(
        api().replace(`${path}/none`, aMap('none', { resourceVersion: second.resourceVersion })),
      ),
      await rejection(api().create(path, aMap('Not a name'))),
    ].map((error) => (error instanceof ApiRefused ? [error.status, error.reason] : error));

    expect(refusals).to.deep.equal([
      [409, 'Conflict'],
      [409, 'Conflict'],
      [409, 'Conflict'],
      [409, 'AlreadyExists'],
      [404, 'NotFound'],
      [422, 'Invalid'],
    ]);
  });

  it("learns the server's time from its answers", async () => {
    await api().get(path);

    // the cluster is this machine, or keeps time
    expect(Math.abs(clock.now() - Date.now())).to.be.lessThan(10_000);
  });

  it('reads a new token from its file without a restart', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sandpool-access-'));
    const config = JSON.parse(readFileSync(cluster().kubeconfig('admin'), 'utf8')) as {
      users: { user: Record<string, unknown> }[];
    };
    const [user] = config.users;
    if (!user) throw new Error('a kubeconfig without users');
    const token = String(user.user['token']);
    user.user = {
      'auth-provider': { name: 'tokenFile', config: { tokenFile: join(folder, 'token') } },
    };
    writeFileSync(join(folder, 'config'), JSON.stringify(config));
    writeFileSync(join(folder, 'token'), 'not yet');
    const own = await open(join(folder, 'config'));

    const isLetIn = (): Promise<boolean> =>
      own
        .lane('claims')
        .get(path)
        .then(
          () => true,
          () => false,
        );

    try {
      expect(await rejection(own.lane('claims').get(path))).to.include({ status: 401 });
      writeFileSync(join(folder, 'token'), `${token}\n`);
      // a rejected one is read again after a second at the earliest
      await eventually(isLetIn, 'the new token is used');
    } finally {
      await own.close();
    }
    rmSync(folder, { recursive: true });
  });
});

describe('the API client during a restart of the API server', function () {
  const controlPlane = onTheControlPlane();

  it('presents a client certificate, knows when nothing was sent, and recovers', async () => {
    const access = await readClusterAccess(
      { kubeconfig: await controlPlane().certificateKubeconfig('sandpool') },
      quietLog,
    );
    const server = apiServer({ metrics: silentMetrics, access, version: '0' });
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
    const name = async (): Promise<unknown> =>
      (
        (await server.lane('claims').create(path, review)) as {
          status: { userInfo: { username: string } };
        }
      ).status.userInfo.username;

    expect(access.authorization()).to.equal(undefined);
    expect(await name()).to.equal('sandpool');
    await controlPlane().kill('kube-apiserver');
    expect(await rejection(name())).to.be.instanceOf(NotSent);
    await controlPlane().begin('kube-apiserver');
    expect(await name()).to.equal('sandpool');

    // What was before its start it has forgotten.
    const watching = (async () => {
      for await (const event of server
        .lane('watches')
        .watch(
          '/api/v1/nodes',
          { resourceVersion: '1', timeoutSeconds: 5 },
          AbortSignal.timeout(NEVER_COMES_MS),
        ))
        expect(event.type).to.equal('BOOKMARK');
    })();
    expect(await rejection(watching)).to.include({ status: 410, reason: 'Expired' });
    await server.close();
  });
});
