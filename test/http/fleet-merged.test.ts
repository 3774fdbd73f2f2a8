import { expect } from 'chai';
import { chainLine, CHAIN_START } from '../../src/services/audit/audit-chain.ts';
import type { Engine } from '../support/harness/engine-operations.ts';
import { FakeDebug } from '../support/fakes/fake-debug.ts';
import { EventReader } from '../support/harness/event-reader.ts';
import { eventually } from '../support/harness/eventually.ts';
import { eachResource } from '../../src/model/pools/quota.ts';
import type { Caller } from '../../src/model/tenant.ts';
import { aFleetOfServers, type FleetOfServers } from './fleet-support.ts';

describe("a manager's view of all clusters", () => {
  let servers: FleetOfServers;

  beforeEach(async () => {
    servers = await aFleetOfServers();
  });
  afterEach(() => servers.stop());

  const everyOne = (): Readonly<Record<string, Engine>> => ({
    hub: servers.manager.operations,
    ...Object.fromEntries(
      Object.entries(servers.workers).map(([id, { operations }]) => [id, operations]),
    ),
  });
  const cut = async (clusterId: string): Promise<void> => {
    servers.cut(clusterId);
    await eventually(() => !servers.fleet.links.find(clusterId), 'the link is cut');
  };
  const ask = async <T>(path: string) => {
    const { status, headers, text } = await servers.manager.admin.get(path);
    return { status, warning: headers['warning'], json: JSON.parse(text) as T };
  };

  describe('quotas', () => {
    interface Quotas {
      readonly items: readonly {
        readonly resource: string;
        readonly limit: number;
        readonly used: number;
        readonly remaining: number;
      }[];
      readonly incomplete?: true;
    }
    const path = '/admin/quotas/blue/ada';
    const limits = async (query = '') =>
      Object.fromEntries(
        (await ask<Quotas>(`${path}${query}`)).json.items.map(({ resource, limit }) => [
          resource,
          limit,
        ]),
      );
    const set = (query: string, change: object) =>
      servers.manager.admin.put(`${path}${query}`, change);

    it('are set and shown per cluster, and shown as sums', async () => {
      await set('', { sandboxes: 1, pools: 1, cpu: '2' });
      await set('?clusterID=w1', { sandboxes: 20, pools: 2, cpu: '3' });
      await set('?clusterID=w2', { sandboxes: 300, pools: 3 });
      expect(await limits('?clusterID=hub')).to.include({ sandboxes: 1, pools: 1, cpu: 2 });
      expect(await limits('?clusterID=w1')).to.include({ sandboxes: 20, pools: 2, cpu: 3 });
      const sums = await limits();
      expect(sums).to.include({ sandboxes: 321, pools: 6 });
      expect(sums).not.to.have.property('cpu'); // of which w2 gives any amount
      expect((await set('?clusterID=none', { pools: 1 })).json.errorCode).to.equal(
        'CLUSTER_NOT_FOUND',
      );
    });

    it('omit a cluster that reports a negative amount', async () => {
      Object.assign(servers.workers['w1']!.operations, {
        getQuotasOf: async (_: Caller, tenant: object) => ({
          ...{ tenant, limits: eachResource(() => -5), used: eachResource(() => 0) },
        }),
      });
      const { json, warning } = await ask<Quotas>(path);
      expect([json.incomplete, warning?.includes('w1')]).to.deep.equal([true, true]);
    });

    it('count the usage, and name missing clusters', async () => {
      for (const [at, { operations }] of Object.values(servers.workers).entries()) {
        const { getQuotas } = operations;
        const used = eachResource(() => 1 + at);
        Object.assign(operations, {
          getQuotas: async (caller: Caller) => ({ ...(await getQuotas(caller)), used }),
        });
      }
      const { text } = await servers.manager.tenant.get('/quotas');
      const used = (JSON.parse(text) as Quotas).items.find(({ resource }) => resource === 'pools');
      expect(used).to.include({ used: 3, remaining: (used?.limit ?? 0) - 3 });
      await cut('w2');
      const { json, warning } = await ask<Quotas>('/quotas');
      expect([json.incomplete, warning?.includes('w2')]).to.deep.equal([true, true]);
      expect((await set('?clusterID=w2', { pools: 1 })).json.errorCode).to.equal(
        'CLUSTER_UNAVAILABLE',
      );
    });
  });

  describe('statistics', () => {
    interface Statistics {
      readonly statistics: {
        readonly total: number;
        readonly byStatus: Readonly<Record<string, number>>;
        readonly byNamespace: Readonly<Record<string, number>>;
      };
      readonly incomplete?: true;
    }
    const counted = async (path = '') => ask<Statistics>(`/admin/statistics/sandboxes${path}`);

    beforeEach(async () => {
      const all = { hub: servers.manager, ...servers.workers };
      for (const [at, server] of Object.values(all).entries()) {
        const pool = { name: 'shells', templateName: 'default', replicas: at + 1 };
        await server.tenant.post('/sandboxpools', pool);
        for (let claims = 0; claims <= at; claims += 1)
          await server.tenant.post('/sandboxes', { poolName: 'shells' });
      }
    });

    it('are the sum over all clusters, or those of the named one', async () => {
      const { json } = await counted();
      expect(json).to.deep.equal({
        statistics: { total: 6, byStatus: { Running: 6 }, byNamespace: { 'team-blue': 6 } },
      });
      for (const [clusterId, total] of Object.entries({ hub: 1, w1: 2, w2: 3 }))
        expect((await counted(`?clusterID=${clusterId}`)).json.statistics.total).to.equal(total);
    });

    it('name missing clusters, and fail for a named one that is disconnected', async () => {
      await cut('w2');
      const { json, warning } = await counted();
      expect([json.statistics.total, json.incomplete]).to.deep.equal([3, true]);
      expect(warning).to.include('clusters w2');
      const named = await servers.manager.admin.get('/admin/statistics/sandboxes?clusterID=w2');
      expect([named.status, named.json.errorCode]).to.deep.equal([503, 'CLUSTER_UNAVAILABLE']);
    });

    it('omit malformed counts', async () => {
      Object.assign(servers.workers['w1']!.operations, {
        sandboxStatistics: async () => ({ total: -5, byStatus: new Map(), byNamespace: new Map() }),
      });
      const { json, warning } = await counted();
      expect([json.statistics.total, json.incomplete]).to.deep.equal([4, true]);
      expect(warning).to.include('clusters w1');
    });
  });

  it('returns 404 for an unknown clusterID, and so does a daemon that is not a manager', async () => {
    const { manager, workers } = servers;
    for (const path of ['/admin/statistics/sandboxes', '/admin/audit', '/debug/queues'])
      for (const [server, clusterId] of [
        [manager, 'w9'],
        [workers['w1']!, 'w2'],
      ] as const) {
        const { status, json } = await server.admin.get(`${path}?clusterID=${clusterId}`);
        expect([status, json.errorCode], path).to.deep.equal([404, 'CLUSTER_NOT_FOUND']);
      }
    const { json } = await manager.admin.get('/debug/queues?clusterID=W_9');
    expect(json.detail).to.deep.equal({ field: 'clusterID' });
  });

  describe('the audit', () => {
    interface Page {
      readonly items: readonly { readonly requestId: string; readonly clusterID: string }[];
      readonly nextCursor?: string;
      readonly incomplete?: true;
    }
    const WROTE = { hub: [1, 5, 9], w1: [2, 3, 10, 4], w2: [5, 6, 7, 8] };

    beforeEach(() => {
      for (const [clusterId, operations] of Object.entries(everyOne())) {
        let end = CHAIN_START;
        for (const minute of WROTE[clusterId as keyof typeof WROTE]) {
          const time = new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
          const requestId = `${clusterId}-${minute}`;
          const next = chainLine(end, {
            time,
            replica: 'r',
            kind: 'write',
            requestId,
            status: 201,
          });
          end = next.end;
          operations.recentAudit.add([next.line]);
        }
      }
    });

    const pages = async (query: string): Promise<readonly Page[]> => {
      const read: Page[] = [];
      for (let next: string | undefined = ''; next !== undefined;) {
        const { status, json }: { status: number; json: Page } = await ask<Page>(
          `/admin/audit?${query}${next === '' ? '' : `&cursor=${next}`}`,
        );
        expect(status, JSON.stringify(json)).to.equal(200);
        read.push(json);
        next = json.nextCursor;
      }
      return read;
    };
    const ids = (read: readonly Page[]): readonly string[] =>
      read.flatMap(({ items }) => items.map(({ requestId }) => requestId));
    const ALL = [
      'hub-9',
      'w2-8',
      'w2-7',
      'w2-6',
      'hub-5', // of one age in the order of the clusters
      'w2-5',
      'w1-4',
      'w1-10',
      'w1-3',
      'w1-2',
      'hub-1',
    ];

    it("is one list, each line once, in pages of any size, in each cluster's own order", async () => {
      for (const limit of [1, 2, 3, 7, 20]) {
        const read = await pages(`limit=${limit}`);
        expect(ids(read), String(limit)).to.deep.equal(ALL);
        // nor is one asked again whose lines were all shown
        expect(read.filter(({ incomplete }) => incomplete)).to.deep.equal([]);
      }
      const [first] = await pages('limit=20');
      expect(first?.items.slice(0, 2).map(({ clusterID }) => clusterID)).to.deep.equal([
        'hub',
        'w2',
      ]);
      expect(ids(await pages('limit=2&clusterID=w1'))).to.deep.equal([
        'w1-4',
        'w1-10',
        'w1-3',
        'w1-2',
      ]);
    });

    it('resumes at its position on a cluster that was disconnected', async () => {
      const first = await ask<Page>('/admin/audit?limit=3');
      await cut('w1');
      const second = await ask<Page>(`/admin/audit?limit=20&cursor=${first.json.nextCursor ?? ''}`);
      expect(ids([first.json, second.json])).to.deep.equal(
        ALL.filter((id) => !id.startsWith('w1')),
      );
      expect([second.json.incomplete, second.warning]).to.deep.equal([
        true,
        '199 - "no answer from the clusters w1"',
      ]);
    });

    it('refuses a malformed cursor', async () => {
      const far = `f${Buffer.from('w1=x').toString('base64url')}`;
      for (const cursor of ['f!', far, 'x', 'f'.repeat(9_000), '17']) {
        const { status, json } = await servers.manager.admin.get(`/admin/audit?cursor=${cursor}`);
        expect([status, json.detail], cursor).to.deep.equal([400, { field: 'cursor' }]);
      }
      const { json } = await ask<Page>('/admin/audit?limit=1');
      const alone = await servers.workers['w1']!.admin.get(
        `/admin/audit?cursor=${json.nextCursor ?? ''}`,
      );
      expect([alone.status, alone.json.detail]).to.deep.equal([400, { field: 'cursor' }]);
    });
  });

  describe('actors', () => {
    interface Actors {
      readonly items: readonly { readonly key: string; readonly name: string }[];
      readonly next?: string;
      readonly incomplete?: true;
    }

    let debugs: Readonly<Record<string, FakeDebug>>;
    beforeEach(() => {
      debugs = Object.fromEntries(
        Object.entries(everyOne()).map(([id, operations]) => {
          const debug = new FakeDebug();
          Object.assign(operations, debug);
          return [id, debug];
        }),
      );
    });

    it('are listed by cluster, under names that can be requested', async () => {
      for (const operations of Object.values(everyOne())) {
        const { listActors } = operations;
        Object.assign(operations, {
          listActors: (...call: Parameters<typeof listActors>) => ({
            ...listActors(...call),
            ...(call[1].after ? { next: undefined } : {}),
          }),
        });
      }
      const keys: string[] = [];
      for (let next: string | undefined = ''; next !== undefined;) {
        const { json }: { json: Actors } = await ask<Actors>(
          `/debug/actors?limit=1${next === '' ? '' : `&cursor=${next}`}`,
        );
        keys.push(...json.items.map(({ key }) => key));
        next = json.next;
      }
      expect(keys).to.deep.equal(['hub.k', 'hub.k', 'w1.k', 'w1.k', 'w2.k', 'w2.k']);
      await cut('w1');
      const { json, warning } = await ask<Actors>('/debug/actors?cursor=w1.');
      expect([json.items.map(({ key }) => key), json.incomplete]).to.deep.equal([['w2.k'], true]);
      expect(warning).to.include('clusters w1');
    });

    it('can be limited to one cluster or one pool', async () => {
      const askedOf = async (query: string) => {
        await ask(`/debug/actors?limit=1&${query}`);
        return Object.entries(debugs).flatMap(([clusterId, { asked }]) =>
          asked.splice(0).map((request) => [clusterId, 'pool' in request ? request.pool : '']),
        );
      };
      expect(await askedOf('clusterID=w2')).to.deep.equal([['w2', '']]);
      expect(await askedOf('pool=w1::shells')).to.deep.equal([['w1', 'shells']]);
      expect(await askedOf('pool=shells')).to.deep.equal([['hub', 'shells']]);
      expect(await askedOf('pool=hub::shells')).to.deep.equal([['hub', 'shells']]);
    });

    it('are shown, followed and rebuilt on their own clusters', async () => {
      for (const [key, clusterId] of [
        ['w1.k', 'w1'],
        ['hub.k', 'hub'],
        ['k', 'hub'],
      ] as const) {
        const path = `/debug/actors/sandbox/${key}`;
        for (const shown of [await ask<object>(path), await ask<object>(`${path}?replica=two`)])
          expect(shown.json).to.include({ key: `${clusterId}.k`, name: `${clusterId}.sb-k` });
        const reader = await EventReader.open(servers.manager.port, `${path}/inspect`, {
          'SERVICE-API-KEY': servers.manager.admin.key ?? '',
        });
        await reader.read().until((all) => all.at(-1)?.event === 'end', 'it is no more');
        reader.close();
        expect(debugs[clusterId]?.asked.splice(0)).to.have.length(3);
      }
      const { json } = await servers.manager.admin.get('/debug/actors/pool/w2::blue%2Fshells');
      expect(json.errorCode).to.equal('NOT_FOUND');
      expect(debugs['w2']?.asked).to.deep.equal([{ kind: 'pool', text: 'blue/shells' }]);
    });

    it('belong to replicas that each cluster knows', async () => {
      for (const path of ['queues', 'driver', 'reflectors', 'shards'])
        expect((await ask(`/debug/${path}?clusterID=w1`)).status, path).to.equal(200);
      expect((await ask('/debug/machines/pool?clusterID=w1')).status).to.equal(200);
    });
  });
});
