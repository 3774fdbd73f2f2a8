import { expect } from 'chai';
import { podNameOf } from '../../src/model/identifiers.ts';
import { eventually } from '../support/eventually.ts';
import type { HttpAnswer, HttpClient } from '../support/http-client.ts';
import { startRedis, type TestRedis } from '../support/redis-server.ts';
import { aPodTemplate, Replicas } from '../support/replicas.ts';
import { onTheControlPlane } from '../support/shared-cluster.ts';

describe('three replicas on a cluster', function () {
  this.timeout(90_000);
  const controlPlane = onTheControlPlane();
  let redis: TestRedis;
  let replicas: Replicas;
  let tenant: string;

  before(async () => {
    redis = await startRedis();
    replicas = await Replicas.start({ cluster: controlPlane(), redis: redis.settings });
    tenant = await replicas.tenant('red', 'rita');
    await controlPlane().apply(aPodTemplate('idle-pod'));
  });
  after(async () => {
    await replicas?.stop();
    await redis?.stop();
  });

  const clients = (key = tenant): readonly [HttpClient, HttpClient, HttpClient] => {
    const [one, two, three] = replicas.list.map((replica) => replica.client(key));
    if (!one || !two || !three) throw new Error('there are three');
    return [one, two, three];
  };
  /** Repeats what is refused for a moment: a template that is not known yet, a usage that is counted. */
  const until = async (status: number, ask: () => Promise<HttpAnswer>, patienceMs = 15_000): Promise<HttpAnswer> => {
    let answer: HttpAnswer | undefined;
    await eventually(async () => (answer = await ask()).status === status, `an answer of ${status}`, patienceMs).catch((error: unknown) => {
      throw new Error(`${String(error)}, but ${answer?.status}: ${answer?.text}`);
    });
    if (!answer) throw new Error('nothing was asked');
    return answer;
  };
  const idOf = ({ json }: HttpAnswer): string => json.sandbox?.['sandboxId'] ?? '';

  it('hand out what one of them made, on any of them', async () => {
    const [one, two, three] = clients();
    await until(201, () => one.post('/sandboxpools', { name: 'p', templateName: 'idle-pod', replicas: 3 }));

    const id = idOf(await until(201, () => two.post('/sandboxes', { poolName: 'p' })));

    expect((await three.get(`/sandboxes/${id}`)).json.sandbox?.['status']).to.equal('Running');
    expect((await one.post(`/sandboxes/${id}/exec`, { command: ['echo', 'hello'] })).json).to.include({ stdout: 'hello\n' });
    expect((await three.delete(`/sandboxes/${id}`)).status).to.equal(200);
    const after = await one.get(`/sandboxes/${id}`);
    expect([after.json.sandbox?.['status'], after.json.errorCode], after.text).to.deep.be.oneOf([['Stopping', undefined], [undefined, 'SANDBOX_NOT_FOUND']]);
    await eventually(async () => {
      const [finished] = (await two.get('/sandboxes?phase=Completed')).json.items ?? [];
      return finished?.['sandboxId'] === id && finished['endReason'] === 'deleted';
    }, 'it shows as finished elsewhere');
  });

  it('lead each shard on one of them, and each tells of all', async () => {
    const [one, two, three] = clients(replicas.adminKey);
    interface Report { readonly replica: string; readonly replicas: readonly string[]; readonly shards: readonly { readonly replica?: string; readonly leading: boolean }[] }
    const reports = async (): Promise<readonly Report[]> =>
      await Promise.all([one, two, three].map(async (client) => JSON.parse((await client.get('/debug/shards')).text) as Report));

    await eventually(async () => {
      const all = await reports();
      const leaders = Array.from({ length: 16 }, (_, shard) => all.filter(({ shards }) => shards[shard]?.leading).map(({ replica }) => replica));
      return leaders.every((names, shard) => names.length === 1 && all.every(({ shards }) => shards[shard]?.replica === names[0]))
        && all.every(({ replicas: live, replica }) => live.length === 3 && live.includes(replica));
    }, 'each shard is led by one, as all of them say');
    expect((await clients()[0].get('/debug/shards')).status).to.equal(403);
  });

  it('keep a claim whose replica was killed right after it, and go on filling pools that it led', async () => {
    const pools = ['a', 'b', 'c', 'd'];
    const [one, two, three] = clients();
    for (const name of pools) await until(201, () => one.post('/sandboxpools', { name, templateName: 'idle-pod', replicas: 1 }));
    const ids = [];
    for (const poolName of pools) ids.push(idOf(await until(201, () => one.post('/sandboxes', { poolName }))));

    await replicas.replica(0).kill();

    for (const id of ids) {
      expect((await two.get(`/sandboxes/${id}`)).json.sandbox?.['status']).to.equal('Running');
      expect((await three.delete(`/sandboxes/${id}`)).status).to.equal(200);
    }
    for (const poolName of pools) await until(201, () => three.post('/sandboxes', { poolName }), 30_000);
    await replicas.replica(0).start();
  });

  it('stop in order, one by one, while the others answer', async () => {
    for (const replica of replicas.list) {
      expect(await replica.stop()).to.equal(0);
      await replica.start();
    }
    await until(201, () => clients()[1].post('/sandboxes', { poolName: 'p' }));
  });

  it('take pools that kubectl makes, and let kubectl end a sandbox', async () => {
    const namespace = replicas.namespaceOf('red');
    const [one, two] = clients();
    await controlPlane().apply({
      apiVersion: 'sandpool.dev/v1alpha1', kind: 'SandboxPool', metadata: { name: 'by-hand', namespace, annotations: { 'sandpool.dev/user': 'rita' } },
      spec: { templateName: 'idle-pod', replicas: 1 },
    });
    const id = idOf(await until(201, () => one.post('/sandboxes', { poolName: 'by-hand' })));

    await controlPlane().kubectl('delete', 'sandbox', podNameOf(id), '-n', namespace);

    await eventually(async () => (await two.get(`/sandboxes/${id}`)).status === 404, 'it is gone everywhere');
    await eventually(async () => (await one.get('/sandboxes?phase=Completed')).json.items?.some(({ sandboxId }) => sandboxId === id) === true, 'it is in the history');
  });

  it('name themselves in every line that they log', () => {
    for (const { log, name } of replicas.list) {
      const lines = log.trim().split('\n').map((line) => JSON.parse(line) as { readonly replica?: string });
      expect(lines.every(({ replica }) => replica?.startsWith(`${name}-`) === true)).to.equal(true);
    }
  });

  it('lead nothing, and are not ready, where a later version has written', async () => {
    await controlPlane().kubectl('patch', 'sbp', 'p', '-n', replicas.namespaceOf('red'), '--type=merge', '-p', '{"resolved":{"format":99}}');

    for (const client of clients(replicas.adminKey)) {
      await eventually(async () => (await client.get('/readyz')).status === 503, 'not ready');
      expect((await client.get('/readyz')).json.problems?.join()).to.include('was written by a later version (format 99)');
      await eventually(async () => !(await client.get('/debug/shards')).text.includes('"leading":true'), 'it leads nothing');
      expect((await client.get('/sandboxes?all=true')).status).to.equal(200);
    }
    // What is idle there is left alone: only the later version knows what that pool is.
    expect((await controlPlane().kubectl('get', 'sandboxes', '-n', replicas.namespaceOf('red'), '-o', 'name')).trim().split('\n').length).to.be.at.least(1);
  });
});
