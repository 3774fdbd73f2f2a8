import { expect } from 'chai';
import { shownInFleet } from '../../src/fleet/routing/fleet-names.ts';
import { once } from 'node:events';
import { eventually } from '../support/harness/eventually.ts';
import { aFleetOfServers, type FleetOfServers } from './fleet-support.ts';

describe('a manager over the clusters of its fleet', () => {
  let servers: FleetOfServers;

  before(async () => {
    servers = await aFleetOfServers();
    for (const name of ['hub', 'w1', 'w2'])
      await servers.manager.tenant.post('/sandboxpools', {
        name: 'shells',
        templateName: 'default',
        replicas: 5,
        labels: name === 'hub' ? undefined : { of: name },
      });
    for (const worker of Object.values(servers.workers))
      await worker.tenant.post('/sandboxpools', {
        name: 'shells',
        templateName: 'default',
        replicas: 5,
      });
  });
  after(() => servers.stop());

  const claim = async (poolName: string): Promise<string> => {
    const { json } = await servers.manager.tenant.post('/sandboxes', { poolName });
    return json.sandbox?.['sandboxId'] ?? '';
  };

  it('claims on the cluster of the pool, for the calling tenant', async () => {
    const { tenant, stranger } = servers.manager;
    const { status, json } = await tenant.post('/sandboxes', { poolName: 'w1::shells' });
    const id = json.sandbox?.['sandboxId'] ?? '';
    expect([status, json.sandbox?.['poolName'], json.sandbox?.['user']]).to.deep.equal([
      201,
      'w1::shells',
      'ada',
    ]);
    expect(id).to.match(/^w1\.[0-9a-f-]{36}$/);
    expect((await tenant.get(`/sandboxes/${id}`)).json.sandbox).to.have.property('sandboxId', id);
    expect((await stranger.get(`/sandboxes/${id}`)).json.errorCode).to.equal('SANDBOX_NOT_FOUND');
    const bare = id.slice('w1.'.length);
    expect((await tenant.get(`/sandboxes/${bare}`)).status).to.equal(404);
    const { json: own } = await servers.workers['w1']!.tenant.get(`/sandboxes/${bare}`);
    expect(own.sandbox).to.have.property('sandboxId', bare);
    expect((await tenant.delete(`/v1/sandboxes/${id}`)).json).to.include({
      sandboxId: id,
      status: 'Stopping',
    });
  });

  it('forwards bodies, refusals and conditions', async () => {
    const { tenant } = servers.manager;
    const id = await claim('w2::shells');
    const { json } = await tenant.post(`/sandboxes/${id}/exec`, { command: 'true' });
    expect(json).to.have.property('stdout');
    const refused = await tenant.post(`/sandboxes/${id}/exec`, { command: 7 });
    expect([refused.status, refused.json.detail]).to.deep.include(400);
    const { headers } = await tenant.get(`/sandboxes/${id}`);
    const [, w2] = servers.fleet.links.list();
    expect([headers['sandpool-cluster'], headers['sandpool-link']]).to.deep.equal([
      'w2',
      w2?.links[0]?.linkId,
    ]);
    expect((await tenant.get('/sandboxpools')).headers).not.to.have.property('sandpool-cluster');
    const again = await tenant.get(`/sandboxes/${id}`, {
      headers: { 'If-None-Match': headers['etag'] ?? '' },
    });
    expect(again.status).to.equal(304);
    expect(again.headers).to.include({ 'sandpool-cluster': 'w2' });
    const idle = await tenant.put(`/sandboxes/${id}/idle-timeout`, { idleTimeout: '5m' });
    expect(idle.json).to.have.nested.property('sandbox.sandboxId', id);
  });

  it('shows its own resources by composite names, and accepts short ones', async () => {
    const { tenant } = servers.manager;
    const id = await claim('shells');
    expect(id).to.match(/^hub\./);
    const bare = id.slice('hub.'.length);
    for (const form of [id, bare])
      expect((await tenant.get(`/sandboxes/${form}`)).json.sandbox).to.include({
        sandboxId: id,
        poolName: 'hub::shells',
      });
    expect((await tenant.get('/sandboxpools/shells')).json.template).to.have.property(
      'name',
      'hub::shells',
    );
    const marked = { headers: { 'Idempotency-Key': 'once' } };
    const [first, second] = [
      await tenant.post('/sandboxes', { poolName: 'shells' }, marked),
      await tenant.post('/sandboxes', { poolName: 'shells' }, marked),
    ];
    expect(first.json.sandbox?.['sandboxId']).to.match(/^hub\./);
    expect(second.json).to.deep.equal(first.json);
  });

  it('repeats a claim with an Idempotency-Key on the cluster of the first one', async () => {
    const { tenant } = servers.manager;
    const marked = { headers: { 'Idempotency-Key': 'far' } };
    const first = await tenant.post('/sandboxes', { poolName: 'w1::shells' }, marked);
    const second = await tenant.post('/sandboxes', { poolName: 'w1::shells' }, marked);
    expect(second.json).to.deep.equal(first.json);
    expect(second.headers['idempotency-replayed']).to.equal('true');
  });

  it('lists over all clusters, in whole pages without gaps', async () => {
    const { admin } = servers.manager;
    const whole = await admin.get('/sandboxes?all=true&limit=100');
    const { items = [], total } = whole.json;
    expect(new Set(items.map(({ sandboxId }) => String(sandboxId).split('.')[0]))).to.deep.equal(
      new Set(['hub', 'w1', 'w2']),
    );
    expect(total).to.equal(items.length);
    const paged: unknown[] = [];
    for (let offset = 0; offset < items.length; offset += 2) {
      const { json } = await admin.get(`/sandboxes?all=true&limit=2&offset=${offset}`);
      paged.push(...(json.items ?? []).map(({ sandboxId }) => sandboxId));
    }
    expect(paged).to.deep.equal(items.map(({ sandboxId }) => sandboxId));
    const one = await admin.get('/sandboxes?all=true&poolName=w1::shells');
    expect(new Set((one.json.items ?? []).map(({ poolName }) => poolName))).to.deep.equal(
      new Set(['w1::shells']),
    );
    for (const own of ['hub::shells', 'shells']) {
      const { json } = await admin.get(`/sandboxes?all=true&poolName=${own}`);
      expect(json).not.to.have.property('incomplete');
      expect(new Set((json.items ?? []).map(({ poolName }) => poolName))).to.deep.equal(
        new Set(['hub::shells']),
      );
    }
    expect((await admin.send('HEAD', '/sandboxes?all=true')).headers).not.to.have.property(
      'warning',
    );
    const { json: pools } = await servers.manager.tenant.get('/sandboxpools');
    expect(pools.items?.map(({ name }) => name)).to.have.members([
      'hub::shells',
      'w1::shells',
      'w2::shells',
    ]);
    const deep = await admin.get('/sandboxes?all=true&offset=10000');
    expect([deep.status, deep.json.detail]).to.deep.equal([400, { field: 'offset' }]);
  });

  it('forwards requests to endpoints of other clusters, whatever their address', () => {
    const body = { sandbox: { sandboxId: 'x', endpoints: { 'a/b': 'http://127.0.0.1:1/' } } };
    const shown = (isOwn?: true) =>
      shownInFleet({ path: '/sandboxes/{sandboxId}' }, body, {
        ...{ clusterId: 'w1', base: () => 'http://hub' },
        isOwn,
      });
    expect(shown()).to.have.deep.nested.property('sandbox.endpoints', {
      'a/b': 'http://hub/sandboxes/w1.x/endpoints/a%2Fb/',
    });
    expect(shown(true)).to.have.deep.nested.property('sandbox.endpoints', body.sandbox.endpoints);
  });

  it('returns 404 for unknown clusters and malformed names', async () => {
    const { tenant } = servers.manager;
    const uuid = '0190d4a5-7b1e-7c3a-9f00-000000000001';
    const asked = [
      [await tenant.get(`/sandboxes/w9.${uuid}`), 404, 'CLUSTER_NOT_FOUND'],
      [await tenant.post('/sandboxes', { poolName: 'w9::shells' }), 404, 'CLUSTER_NOT_FOUND'],
      [await tenant.get('/sandboxpools/w9::shells'), 404, 'CLUSTER_NOT_FOUND'],
      [await tenant.get('/sandboxpools/w1::nope'), 404, 'POOL_NOT_FOUND'],
      [await tenant.get(`/sandboxes/w1.${uuid}`), 404, 'SANDBOX_NOT_FOUND'],
      [await tenant.get('/sandboxes/w1.nope'), 400, 'INVALID_ARGUMENT'],
      [await tenant.get(`/sandboxes/w1.w1.${uuid}`), 400, 'INVALID_ARGUMENT'],
      [await tenant.get('/sandboxpools/w1::'), 400, 'INVALID_ARGUMENT'],
      [await tenant.post('/sandboxes', { poolName: 'w9::No' }), 400, 'INVALID_ARGUMENT'],
      [await servers.manager.admin.get('/debug/actors?pool=w1::a//b'), 400, 'INVALID_ARGUMENT'],
      [await servers.manager.admin.get('/debug/actors/pool/w9::'), 400, 'INVALID_ARGUMENT'],
      [await tenant.get('/sandboxpools/w1::shells%2F%2Fdebian'), 400, 'INVALID_ARGUMENT'],
      [
        await tenant.post('/sandboxes', { poolName: 'w1::shells//debian' }),
        400,
        'INVALID_ARGUMENT',
      ],
      [await tenant.get('/sandboxes?poolName=w1::shells//x'), 400, 'INVALID_ARGUMENT'],
    ] as const;
    for (const [{ status, json }, code, errorCode] of asked)
      expect([status, json.errorCode]).to.deep.equal([code, errorCode]);
    const { json } = await tenant.post('/sandboxes', { poolName: 'w1::nope' });
    expect(json.detail).to.have.nested.property('availablePools[0].name', 'w1::shells');
  });

  it('names the pool of an exhausted claim and of its remedy with the cluster', async () => {
    const { tenant } = servers.workers['w1']!;
    await tenant.post('/sandboxpools', { name: 'empty', templateName: 'default', replicas: 0 });
    const { json } = await servers.manager.tenant.post('/sandboxes', { poolName: 'w1::empty' });
    expect(json.detail).to.deep.include({
      poolName: 'w1::empty',
      action: { type: 'enlarge-pool', poolName: 'w1::empty' },
    });
    await tenant.delete('/sandboxpools/empty');
  });

  it('requires a key before it reveals anything about a cluster', async () => {
    for (const path of ['/sandboxes/w1.x', '/sandboxes/w9.x', '/sandboxpools/w9::x'])
      expect((await servers.manager.anyone.get(path)).json.errorCode).to.equal('API_KEY_REQUIRED');
  });

  it('is the only source of identities: keys are invalid on a link, and identities off it', async () => {
    const worker = servers.workers['w1']!;
    const way = servers.fleet.links.find('w1')!;
    const request = { method: 'GET', target: '/sandboxes', idempotencyKey: undefined };
    const caller = { namespace: 'team-blue', team: 'blue', user: 'ada', keyId: 'x' } as const;
    const overLink = async (...headers: readonly string[]): Promise<string> => {
      const connection = way.dial();
      connection.write(
        ['GET /sandboxes HTTP/1.1', 'Host: w', 'Connection: close', ...headers, '', ''].join(
          '\r\n',
        ),
      );
      const [bytes] = (await once(connection, 'data')) as [Buffer];
      connection.destroy();
      return bytes.toString('latin1').slice(9, 12);
    };
    const identity = (): string => way.identify({ ...caller, role: 'user' }, request);
    const taken = identity();
    const header = 'Sandpool-Fleet-Identity: ';
    expect(await overLink(header + taken)).to.equal('200');
    expect(await overLink(header + taken)).to.equal('401'); // replayed
    expect(await overLink(`SERVICE-API-KEY: ${worker.tenant.key ?? ''}`)).to.equal('401');
    const offLink = await worker.anyone.get('/sandboxes', {
      headers: { 'Sandpool-Fleet-Identity': identity() },
    });
    expect(offLink.json.errorCode).to.equal('API_KEY_REQUIRED');
  });

  it('reports unreachable clusters, and serves the others', async () => {
    const { tenant, admin } = servers.manager;
    const id = await claim('w2::shells');
    servers.cut('w2');
    await eventually(() => !servers.fleet.links.find('w2'), 'the link is cut');
    const { status, json, headers } = await tenant.get(`/sandboxes/${id}`);
    expect([status, json.errorCode, headers['retry-after']]).to.deep.equal([
      503,
      'CLUSTER_UNAVAILABLE',
      '1',
    ]);
    const list = await admin.get('/sandboxes?all=true');
    expect([list.status, list.json]).to.have.nested.property('[1].incomplete', true);
    expect(list.headers['warning']).to.include('clusters w2');
    expect((await tenant.post('/sandboxes', { poolName: 'w1::shells' })).status).to.equal(201);
  });
});
