import { expect } from 'chai';
import { podNameOf } from '../../src/model/identifiers.ts';
import { eventually } from '../support/eventually.ts';
import type { HttpAnswer, HttpClient } from '../support/http-client.ts';
import { startRedis, type TestRedis } from '../support/redis-server.ts';
import { aPodTemplate, Replicas } from '../support/replicas.ts';
import { onTheControlPlane } from '../support/shared-cluster.ts';

describe('a daemon on a cluster, when its Pods suffer', function () {
  this.timeout(90_000);
  const controlPlane = onTheControlPlane();
  let redis: TestRedis;
  let replicas: Replicas;
  let client: HttpClient;
  let namespace: string;

  before(async () => {
    redis = await startRedis();
    replicas = await Replicas.start({ cluster: controlPlane(), redis: redis.settings, count: 1, env: { SANDPOOL_BREAKER_FIRST_PAUSE_SECONDS: '2' } });
    client = replicas.replica(0).client(await replicas.tenant('blue', 'bob'));
    namespace = replicas.namespaceOf('blue');
    await controlPlane().apply(aPodTemplate('idle-pod'));
    await controlPlane().apply(aPodTemplate('huge-pod', { startupTimeout: '1s', containers: [{ name: 'main', image: 'unpullable' }] }));
  });
  after(async () => {
    await replicas?.stop();
    await redis?.stop();
  });

  const until = async (status: number, ask: () => Promise<HttpAnswer>): Promise<HttpAnswer> => {
    let answer: HttpAnswer | undefined;
    await eventually(async () => (answer = await ask()).status === status, `an answer of ${status}`, 30_000).catch((error: unknown) => {
      throw new Error(`${String(error)}, but ${answer?.status}: ${answer?.text}`);
    });
    if (!answer) throw new Error('nothing was asked');
    return answer;
  };
  const claim = async (poolName: string): Promise<string> => String((await until(201, () => client.post('/sandboxes', { poolName }))).json.sandbox?.['sandboxId']);
  const finished = (id: string, endReason: string): Promise<void> => eventually(async () => {
    const items = (await client.get('/sandboxes?phase=Completed')).json.items ?? [];
    return items.some((item) => item['sandboxId'] === id && item['endReason'] === endReason);
  }, `it ended: ${endReason}`, 20_000);
  const breakerOf = (pool: string): Promise<string> => controlPlane().kubectl('get', 'sandboxpool', pool, '-n', namespace, '-o', 'json');

  it('tells why a pool can not be filled, be it a quota or an image', async () => {
    await until(201, () => client.post('/sandboxpools', { name: 'pulls', templateName: 'huge-pod', replicas: 1 }));
    await eventually(async () => (await breakerOf('pulls')).includes('ImagePullBackOff: Back-off pulling image'), 'the breaker knows of the image', 40_000);
    await client.delete('/sandboxpools/pulls');

    await controlPlane().apply({ apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'few', namespace }, spec: { hard: { pods: '0' } } });
    await until(201, () => client.post('/sandboxpools', { name: 'limited', templateName: 'idle-pod', replicas: 2 }));
    await eventually(async () => (await breakerOf('limited')).includes('exceeded quota: few'), 'the breaker knows of the quota', 40_000);
    expect((await client.get('/sandboxpools/limited')).text).to.include('"phase":"Failed"');
    await controlPlane().kubectl('delete', 'resourcequota', 'few', '-n', namespace);
    await claim('limited');
  });

  it('keeps in its history how a claimed one ended: evicted, deleted by hand, dead', async () => {
    await until(201, () => client.post('/sandboxpools', { name: 'mortal', templateName: 'idle-pod', replicas: 3 }));
    const [evicted, deleted, dead] = [await claim('mortal'), await claim('mortal'), await claim('mortal')];
    const eviction = JSON.stringify({ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: podNameOf(evicted), namespace } });
    await controlPlane().kubectlAs('admin', ['create', '--raw', `/api/v1/namespaces/${namespace}/pods/${podNameOf(evicted)}/eviction`, '-f', '-'], eviction);
    await finished(evicted, 'killed');
    await controlPlane().kubectl('delete', 'pod', podNameOf(deleted), '-n', namespace);
    await finished(deleted, 'deleted');
    const status = { status: { phase: 'Failed', containerStatuses: [{ name: 'main', image: 'x', imageID: '', ready: false, restartCount: 0, state: { terminated: { exitCode: 3 } } }] } };
    await controlPlane().kubectl('patch', 'pod', podNameOf(dead), '-n', namespace, '--subresource=status', '--type=merge', '-p', JSON.stringify(status));
    await finished(dead, 'exited');
  });

  it('counts no start as failed where the namespace is being removed, and ends what ran in it', async () => {
    const green = replicas.namespaceOf('green');
    const gil = replicas.replica(0).client(await replicas.tenant('green', 'gil'));
    // One, that is claimed: an idle one that was deleted this young would count as one that could not live.
    await until(201, () => gil.post('/sandboxpools', { name: 'doomed', templateName: 'idle-pod', replicas: 1 }));
    const { json } = await until(201, () => gil.post('/sandboxes', { poolName: 'doomed' }));
    await controlPlane().kubectl('delete', 'namespace', green, '--timeout=60s');
    const admin = replicas.replica(0).client(replicas.adminKey);
    await eventually(async () => {
      const items = (await admin.get('/sandboxes?phase=Completed&all=true')).json.items ?? [];
      return items.some((item) => item['sandboxId'] === json.sandbox?.['sandboxId'] && item['endReason'] === 'deleted');
    }, 'it is in the history', 20_000);
    const pools = (await admin.get('/sandboxpools?all=true')).json.items ?? [];
    expect(pools.map(({ name }) => name)).to.not.include('doomed');
    const failures = replicas.replica(0).log.split('\n').filter((line) => line.includes('startFailure') && line.includes('doomed'));
    expect(failures.filter((line) => !line.includes('is being removed') && !line.includes('has no rights'))).to.deep.equal([]);
  });
});
