import { expect } from 'chai';
import { unavailable } from '../../src/model/refusals.ts';
import { aServer, type TestServer } from './a-server.ts';

const of = (
  name: string,
  rows: readonly (readonly [resource: string, limit: number, used: number, remaining: number])[],
) => ({
  items: rows.map(([resource, limit, used, remaining]) => ({
    name,
    resource,
    limit,
    used,
    remaining,
  })),
  total: rows.length,
});
const ADA = { namespace: 'team-blue', team: 'blue', user: 'ada' };

describe('quotas over HTTP', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await aServer();
  });
  afterEach(() => server.stop());

  it("GET /quotas shows the caller's limits and usage", async () => {
    await server.operations.coordination.reserve(ADA, 'sandboxes', {
      name: 'a',
      amount: 1,
      limit: 10,
    });
    await server.operations.coordination.reserve(ADA, 'replicas', {
      name: 'p',
      amount: 7,
      limit: 10,
    });

    const answer = await server.tenant.get('/quotas');

    expect(answer.status).to.equal(200);
    expect(answer.json).to.deep.equal(
      of('blue/ada', [
        ['sandboxes', 1_000, 1, 999],
        ['pools', 50, 0, 50],
        ['replicas', 2_000, 7, 1_993],
      ]),
    );
    expect(
      (await server.colleague.get('/quotas')).json.items?.map(({ used }) => used),
    ).to.deep.equal([0, 0, 0]);
  });

  it('PUT /admin/quotas/{team}/{user} changes the named fields, and answers like GET', async () => {
    await server.operations.coordination.reserve(ADA, 'sandboxes', {
      name: 'a',
      amount: 5,
      limit: 10,
    });

    const answer = await server.admin.put('/admin/quotas/blue/ada', { sandboxes: 3, pools: 0 });

    const shown = of('blue/ada', [
      ['sandboxes', 3, 5, 0],
      ['pools', 0, 0, 0],
      ['replicas', 2_000, 0, 2_000],
    ]);
    expect([answer.status, answer.json]).to.deep.equal([200, shown]);
    expect((await server.admin.put('/admin/quotas/blue/ada', {})).json).to.deep.equal(shown);
    expect((await server.admin.put('/admin/quotas/blue/ada')).json).to.deep.equal(shown);
    expect((await server.admin.get('/admin/quotas/blue/ada')).json).to.deep.equal(shown);
    expect((await server.tenant.get('/quotas')).json).to.deep.equal(shown);
    expect((await server.colleague.get('/quotas')).json.items?.[0]?.['limit']).to.equal(1_000);
  });

  it('PUT accepts cpu and memory as quantities or numbers, shown in cores and bytes', async () => {
    await server.operations.coordination.reserve(ADA, 'cpu', {
      name: 'p',
      amount: 1_500,
      limit: 9_999,
    });
    const sizes = async (body: object) =>
      (await server.admin.put('/admin/quotas/blue/ada', body)).json.items
        ?.slice(3)
        .map(({ resource, limit, used, remaining }) => [resource, limit, used, remaining]);

    expect(await sizes({ cpu: '2', memory: '64Gi' })).to.deep.equal([
      ['cpu', 2, 1.5, 0.5],
      ['memory', 64 * 2 ** 30, 0, 64 * 2 ** 30],
    ]);
    expect(await sizes({ cpu: 0.25, memory: 2_048 })).to.deep.equal([
      ['cpu', 0.25, 1.5, 0],
      ['memory', 2_048, 0, 2_048],
    ]);
    expect(await sizes({ cpu: 1_000_000, memory: '1Pi' })).to.deep.equal([
      ['cpu', 1_000_000, 1.5, 999_998.5],
      ['memory', 2 ** 50, 0, 2 ** 50],
    ]);
    expect(await sizes({ cpu: 'none' })).to.deep.equal([['memory', 2 ** 50, 0, 2 ** 50]]);
    expect(await sizes({ memory: 'none' })).to.deep.equal([]);
  });

  for (const [body, field] of [
    [{ sandboxes: -1 }, 'sandboxes'],
    [{ sandboxes: 1_000_001 }, 'sandboxes'],
    [{ pools: '3' }, 'pools'],
    [{ pools: 100_001 }, 'pools'],
    [{ replicas: 1.5 }, 'replicas'],
    [{ replicas: null }, 'replicas'],
    [{ sandboxes: true }, 'sandboxes'],
    [{ cpu: '-1' }, 'cpu'],
    [{ cpu: 'many' }, 'cpu'],
    [{ cpu: 1_000_001 }, 'cpu'],
    [{ cpu: '1001k' }, 'cpu'],
    [{ cpu: null }, 'cpu'],
    [{ cpu: -0.5 }, 'cpu'],
    [{ memory: '64GiB' }, 'memory'],
    [{ memory: '2Pi' }, 'memory'],
    [{ memory: 1e300 }, 'memory'],
    [{ memory: '' }, 'memory'],
    [{ memory: ['1Gi'] }, 'memory'],
  ] as const) {
    it(`PUT refuses ${JSON.stringify(body)}`, async () => {
      const answer = await server.admin.put('/admin/quotas/blue/ada', body);
      expect([answer.status, answer.json.errorCode, answer.json.detail?.['field']]).to.deep.equal([
        400,
        'INVALID_ARGUMENT',
        field,
      ]);
      if (field === 'cpu' || field === 'memory')
        expect(answer.json.error).to.match(
          new RegExp(
            `^${field}: (must be a ${field} quantity up to |the number is out of range)`,
            'u',
          ),
        );
      expect(server.operations.records.quotas.records.size).to.equal(0);
    });
  }

  it('impossible names get 404', async () => {
    for (const path of [
      'Blue/ada',
      'blue/a_b',
      '%20/ada',
      `blue/${'a'.repeat(64)}`,
      'blue%2Fada/x',
    ]) {
      expect((await server.admin.get(`/admin/quotas/${path}`)).status, path).to.equal(404);
      expect((await server.admin.put(`/admin/quotas/${path}`, {})).status, path).to.equal(404);
    }
  });

  it('unknown usage causes a 503, without a write', async () => {
    server.operations.coordination.used = async () => {
      throw unavailable('usage is being recounted; try again shortly', 3);
    };

    for (const answer of [
      await server.tenant.get('/quotas'),
      await server.admin.get('/admin/quotas/blue/ada'),
      await server.admin.put('/admin/quotas/blue/ada', { sandboxes: 3 }),
    ]) {
      expect([answer.status, answer.json.errorCode, answer.headers['retry-after']]).to.deep.equal([
        503,
        'UNAVAILABLE',
        '3',
      ]);
    }
    expect(server.operations.records.quotas.records.size).to.equal(0);
  });
});
