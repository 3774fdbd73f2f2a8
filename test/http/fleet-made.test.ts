import { expect } from 'chai';
import { eventually } from '../support/harness/eventually.ts';
import { aServer } from './a-server.ts';
import { aFleetOfServers, type FleetOfServers } from './fleet-support.ts';

describe('a resource created on a manager with clusterID', () => {
  let servers: FleetOfServers;

  const serverOf = (clusterId: string) =>
    clusterId === 'hub' ? servers.manager : servers.workers[clusterId]!;
  const create = (clusterID: unknown, { query = '', ...more }: Made = {}) =>
    servers.manager.tenant.post(
      `/sandboxpools${query}`,
      { name: 'big', templateName: 'default', replicas: 2, clusterID, ...more },
      { headers: { 'Idempotency-Key': 'k' } },
    );
  /** The clusters that have the pool. */
  const made = (): readonly string[] =>
    ['hub', 'w1', 'w2'].filter((each) => serverOf(each).operations.pools.size > 0);

  beforeEach(async () => {
    servers = await aFleetOfServers();
  });
  afterEach(() => servers.stop());

  it('is a pool of that cluster, once with a key', async () => {
    const { status, json, headers } = await create('w1');
    expect(status).to.equal(201);
    expect(json.template).to.include({ name: 'w1::big', user: 'ada' });
    expect(headers['sandpool-cluster']).to.equal('w1');
    expect(headers).not.to.have.property('warning');
    expect((await create('w1')).json).to.deep.equal(json);
    expect(made()).to.deep.equal(['w1']);
    const { tenant } = servers.manager;
    expect((await tenant.get('/sandboxpools/w1::big')).json.template).to.have.nested.property(
      'spec.replicas',
      2,
    );
    expect((await tenant.get('/sandboxpools/big')).status).to.equal(404);
  });

  it("belongs to the manager's own cluster with its id or without one", async () => {
    expect((await create('hub')).json.template).to.have.property('name', 'hub::big');
    const { tenant } = servers.manager;
    const { json } = await tenant.post('/sandboxpools', { name: 'b', templateName: 'default' });
    expect(json.template).to.have.property('name', 'hub::b');
    expect(made()).to.deep.equal(['hub']);
  });

  it('is refused if the cluster is unknown or disconnected', async () => {
    for (const none of ['w9', 'local'])
      expect((await create(none)).json).to.deep.equal({
        error: 'cluster not found',
        errorCode: 'CLUSTER_NOT_FOUND',
      });
    servers.cut('w1');
    await eventually(() => !servers.fleet.links.find('w1'), 'w1 is cut');
    const { status, json } = await create('w1');
    expect([status, json.errorCode, json.detail]).to.deep.equal([
      503,
      'CLUSTER_UNAVAILABLE',
      { clusterID: 'w1' },
    ]);
    expect(made()).to.deep.equal([]);
  });

  it('is refused by the field if the id is malformed or contradictory', async () => {
    for (const [clusterID, more, field] of [
      ['West', {}, 'clusterID'],
      ['', {}, 'clusterID'],
      [7, {}, 'clusterID'],
      [null, {}, 'clusterID'],
      ['w1', { query: '?clusterID=w2' }, 'clusterID'],
      ['hub', { query: '?clusterID=w2' }, 'clusterID'],
      ['w1', { query: '?clusterID=w1&clusterID=w2' }, 'clusterID'],
      ['w1', { name: 'w2::big' }, 'name'],
      ['w1', { name: 'w1::big' }, 'name'],
    ] as const) {
      const { status, json } = await create(clusterID, more);
      expect([status, json.errorCode, json.detail]).to.deep.equal([
        400,
        'INVALID_ARGUMENT',
        { field },
      ]);
    }
    expect(made()).to.deep.equal([]);
    expect((await create('w1', { query: '?clusterID=w1' })).status).to.equal(201);
  });

  it('is refused by the cluster like any of its pools', async () => {
    await create('w1');
    const again = await servers.manager.tenant.post('/sandboxpools', {
      ...{ name: 'big', templateName: 'default', clusterID: 'w1' },
    });
    expect([again.status, again.json.errorCode]).to.deep.equal([409, 'ALREADY_EXISTS']);
    expect((await create('w2', { templateName: 'none' })).json.errorCode).to.equal(
      'SANDBOX_TEMPLATE_NOT_FOUND',
    );
  });

  it('has the same bound on its body', async () => {
    const { status, json } = await create('w1', { labels: { a: 'a'.repeat(1 << 20) } });
    expect([status, json.errorCode]).to.deep.equal([413, 'PAYLOAD_TOO_LARGE']);
  });

  it("is an env or a key of the manager's own cluster, or a member on any cluster", async () => {
    const { tenant, admin } = servers.manager;
    for (const [ask, path, body] of [
      [tenant, '/envs', { name: 'e', templateRef: { name: 'default' } }],
      [tenant, '/api-keys', {}],
      [admin, '/admin/api-keys', { team: 'blue', user: 'ada' }],
    ] as const) {
      for (const clusterID of ['w1', 'w9', 'West']) {
        const { status, json } = await ask.post(path, { ...body, clusterID });
        expect([path, status, json.detail]).to.deep.equal([path, 400, { field: 'clusterID' }]);
      }
      expect((await ask.post(path, { ...body, clusterID: 'hub' })).status, path).to.equal(201);
    }
    const member = await tenant.post('/envs/e/sandboxpools', { name: 'm', clusterID: 'West' });
    expect([member.status, member.json.detail]).to.deep.equal([400, { field: 'clusterID' }]);
  });
});

describe('a resource created on a daemon that is not a manager', () => {
  it('belongs to its own cluster, and to no other', async () => {
    const server = await aServer({ clusterId: 'west' });
    const create = async (clusterID: string) => {
      const body = { name: 'big', templateName: 'default', clusterID };
      const { status, json, headers } = await server.tenant.post('/sandboxpools', body);
      return [status, json.errorCode, headers['warning']];
    };
    try {
      for (const other of ['east', 'local'])
        expect(await create(other)).to.deep.equal([404, 'CLUSTER_NOT_FOUND', undefined]);
      expect(await create('west')).to.deep.equal([201, undefined, undefined]);
    } finally {
      await server.stop();
    }
  });
});

interface Made {
  readonly query?: string;
  readonly name?: string;
  readonly templateName?: string;
  readonly labels?: Readonly<Record<string, string>>;
}
