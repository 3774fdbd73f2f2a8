import { expect } from 'chai';
import type { Caller } from '../../src/model/tenant.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aServer, type TestServer } from './a-server.ts';
import { aFleetOfServers, type FleetOfServers } from './fleet-support.ts';

const CLUSTERS = ['hub', 'w1', 'w2'] as const;

const template = (name: string): string =>
  JSON.stringify({
    apiVersion: 'sandpool.dev/v1alpha1',
    kind: 'SandboxTemplate',
    metadata: { name },
    spec: { containers: [{ name: 'main', image: 'host' }] },
  });

describe('clusterID on a manager', () => {
  let servers: FleetOfServers;
  /** What each cluster was asked to list. */
  let asked: (readonly [cluster: string, filter: object, page: object])[];

  const serverOf = (clusterId: string): TestServer =>
    clusterId === 'hub' ? servers.manager : servers.workers[clusterId]!;
  const noteLists = (clusterId: string): void => {
    const { operations } = serverOf(clusterId);
    const { listSandboxes, listPools } = operations;
    Object.assign(operations, {
      listSandboxes: (caller: Caller, filter: object, page: never) => {
        asked.push([clusterId, filter, page]);
        return listSandboxes(caller, filter, page);
      },
      listPools: (caller: Caller, filter: never, page: never) => {
        asked.push([clusterId, filter, page]);
        return listPools(caller, filter, page);
      },
    });
  };

  beforeEach(async () => {
    servers = await aFleetOfServers();
    asked = [];
    for (const each of CLUSTERS) {
      const { tenant } = serverOf(each);
      await tenant.post('/sandboxpools', { name: 'shells', templateName: 'default', replicas: 1 });
      await tenant.post('/sandboxes', { poolName: 'shells' });
      noteLists(each);
    }
  });
  afterEach(() => servers.stop());

  for (const clusterId of CLUSTERS)
    it(`selects a page of ${clusterId} only, at any offset`, async () => {
      const { tenant } = servers.manager;
      const pools = await tenant.get(`/sandboxpools?clusterID=${clusterId}`);
      expect([pools.json.total, pools.json.items?.[0]?.name]).to.deep.equal([
        1,
        `${clusterId}::shells`,
      ]);
      const path = `/sandboxes?clusterID=${clusterId}&offset=0&limit=1000`;
      const { status, headers, json } = await tenant.get(path);
      expect([status, json.total, headers['warning']]).to.deep.equal([200, 1, undefined]);
      expect(json.items?.[0]?.['sandboxId']).to.match(new RegExp(`^${clusterId}\\.`));
      const deep = await tenant.get(`/sandboxes?clusterID=${clusterId}&offset=2000000&limit=1000`);
      expect([deep.status, deep.json]).to.deep.equal([
        200,
        { items: [], total: 1, limit: 1_000, offset: 2_000_000 },
      ]);
      expect(asked.map(([where, , page]) => [where, page])).to.deep.equal([
        [clusterId, { limit: 20, offset: 0 }],
        [clusterId, { limit: 1_000, offset: 0 }],
        [clusterId, { limit: 1_000, offset: 2_000_000 }],
      ]);
    });

  it('works with other filters, and with the name of a pool there', async () => {
    const { admin } = servers.manager;
    const more = 'phase=Running&metadata.job=a%20b%26c&all';
    for (const poolName of ['shells', 'w1::shells'])
      await admin.get(`/sandboxes?${more}&poolName=${poolName}&clusterID=w1`);
    const filter = { phase: 'Running', metadata: { job: 'a b&c' }, all: true, poolName: 'shells' };
    expect(asked).to.deep.equal([
      ['w1', filter, { limit: 20, offset: 0 }],
      ['w1', filter, { limit: 20, offset: 0 }],
    ]);
    for (const [clusterId, poolName] of [
      ['w1', 'w2::shells'],
      ['w1', 'hub::shells'],
      ['hub', 'w1::shells'],
    ]) {
      const path = `/sandboxes?clusterID=${clusterId}&poolName=${poolName}`;
      const { status, json } = await admin.get(path);
      expect([status, json.detail], path).to.deep.equal([400, { field: 'clusterID' }]);
    }
    expect(asked).to.have.length(2);
  });

  it('is refused if it is malformed, unknown or disconnected', async () => {
    servers.cut('w2');
    await eventually(() => !servers.fleet.links.find('w2'), 'w2 is cut');
    for (const list of ['/sandboxes', '/sandboxpools'])
      for (const [named, status, errorCode] of [
        ['West', 400, 'INVALID_ARGUMENT'],
        ['', 400, 'INVALID_ARGUMENT'],
        ['w9', 404, 'CLUSTER_NOT_FOUND'],
        ['w2', 503, 'CLUSTER_UNAVAILABLE'],
      ] as const) {
        const path = `${list}?clusterID=${named}`;
        const answer = await servers.manager.tenant.get(path);
        expect([answer.status, answer.json.errorCode], path).to.deep.equal([status, errorCode]);
        if (status === 400) expect(answer.json.detail, path).to.deep.equal({ field: 'clusterID' });
      }
    expect(asked).to.deep.equal([]);
  });

  it('selects what a pool can use there', async () => {
    const volume = (claimName: string) => ({
      ...{ claimName, displayName: '', capacity: '1Gi', accessModes: [], storageClass: '' },
      phase: 'Bound' as const,
    });
    const type = (name: string) => ({
      ...{ name, showName: name, description: '', maxMultiplier: 1, extensions: {} },
      baseResources: { requests: {}, limits: {} },
    });
    for (const each of CLUSTERS) {
      const { admin, operations } = serverOf(each);
      await admin.post('/admin/sandbox-templates', { crdJson: template(`from-${each}`) });
      operations.types.push(type(`type-${each}`));
      operations.volumesOf.set('team-blue', [volume(`volume-${each}`)]);
    }
    const { tenant } = servers.manager;
    for (const query of ['', '?clusterID=hub', '?clusterID=w1', '?clusterID=w2']) {
      const cluster = query === '' ? 'hub' : query.slice('?clusterID='.length);
      const names = async (path: string) => {
        const { headers, json } = await tenant.get(`${path}${query}`);
        expect(headers).not.to.have.property('warning');
        return json.items?.map(({ name, claimName }) => String(name ?? claimName));
      };
      expect(await names('/instancetypes')).to.deep.equal([`type-${cluster}`]);
      expect(await names('/volumes')).to.deep.equal([`volume-${cluster}`]);
      expect(await names('/sandbox-templates')).to.include(`from-${cluster}`);
      const { json } = await tenant.get(`/sandbox-templates/from-${cluster}${query}`);
      expect(json.template).to.include({ name: `from-${cluster}` });
    }
    for (const path of ['/instancetypes', '/volumes', '/sandbox-templates'])
      for (const [named, status] of [
        ['W', 400],
        ['w9', 404],
      ] as const)
        expect((await tenant.get(`${path}?clusterID=${named}`)).status).to.equal(status);
  });

  it('is needed for offsets too high in a list of all', async () => {
    const { status, json } = await servers.manager.tenant.get('/sandboxes?offset=9990&limit=20');
    expect([status, json.errorCode]).to.deep.equal([400, 'INVALID_ARGUMENT']);
    expect(json.error).to.include('select a cluster with clusterID');
  });
});

describe('clusterID on a daemon that is not a manager', () => {
  it('must be its own', async () => {
    const server = await aServer();
    try {
      for (const list of ['/sandboxes', '/sandboxpools']) {
        const own = await server.tenant.get(`${list}?clusterID=local`);
        expect([own.status, own.headers['warning']], list).to.deep.equal([200, undefined]);
        const other = await server.tenant.get(`${list}?clusterID=west`);
        expect(other.json.errorCode, list).to.equal('CLUSTER_NOT_FOUND');
        const none = await server.tenant.get(`${list}?clusterID=a.b`);
        expect([none.status, none.json.detail]).to.deep.equal([400, { field: 'clusterID' }]);
      }
    } finally {
      await server.stop();
    }
  });
});
