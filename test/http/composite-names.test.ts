import { expect } from 'chai';
import { readName } from '../../src/http/corridor/local-names.ts';
import { aServer, type TestServer } from './a-server.ts';

describe('names with a cluster prefix', () => {
  let server: TestServer;
  let id: string;

  beforeEach(async () => {
    server = await aServer({ clusterId: 'local' });
    await server.makeShells(5);
    const { json } = await server.tenant.post('/sandboxes', { poolName: 'local::shells' });
    id = json.sandbox?.['sandboxId'] ?? '';
  });
  afterEach(() => server.stop());

  it('are accepted for a sandbox, and shown without prefix', async () => {
    const { status, json } = await server.tenant.get(`/sandboxes/local.${id}`);
    expect([status, json.sandbox?.['sandboxId'], json.sandbox?.['poolName']]).to.deep.equal([
      200,
      id,
      'shells',
    ]);
    expect(
      (await server.tenant.post(`/sandboxes/local.${id}/exec`, { command: 'true' })).status,
    ).to.equal(200);
    expect((await server.tenant.post(`/sandboxes/local.${id}/exec-token`)).status).to.equal(200);
    expect(
      (await server.tenant.put(`/sandboxes/local.${id}/idle-timeout`, { idleTimeout: '5m' }))
        .status,
    ).to.equal(200);
    expect((await server.tenant.delete(`/sandboxes/local.${id}`)).status).to.equal(200);
  });

  it('are accepted for a pool', async () => {
    for (const name of ['local::shells', 'local%3A%3Ashells']) {
      expect((await server.tenant.get(`/sandboxpools/${name}`)).json.template).to.have.property(
        'name',
        'shells',
      );
    }
    expect(
      (await server.tenant.put('/sandboxpools/local::shells', { replicas: 6 })).status,
    ).to.equal(200);
    expect((await server.tenant.get('/sandboxes?poolName=local::shells')).json.total).to.equal(1);
    expect((await server.tenant.delete('/sandboxpools/local::shells')).status).to.equal(200);
  });

  it('of another cluster get 404', async () => {
    const asked = [
      await server.tenant.get(`/sandboxes/other.${id}`),
      await server.tenant.delete(`/sandboxes/other.${id}`),
      await server.tenant.get('/sandboxpools/other::shells'),
      await server.tenant.post('/sandboxes', { poolName: 'other::shells' }),
      await server.tenant.get('/sandboxes?poolName=other::shells'),
    ];
    for (const { status, json } of asked)
      expect([status, json]).to.deep.equal([
        404,
        { error: 'cluster not found', errorCode: 'CLUSTER_NOT_FOUND' },
      ]);
  });

  it('with an image after // are refused', async () => {
    for (const path of [
      '/sandboxpools/local::shells//debian:12',
      '/v1/sandboxpools/shells//debian',
      '/sandboxpools/shells%2F%2Fdebian',
    ]) {
      const { status, json } = await server.tenant.get(path);
      expect([path, status, json.detail]).to.deep.equal([path, 400, { field: 'name' }]);
    }
    const { status, json } = await server.tenant.post('/sandboxes', {
      poolName: 'local::shells//debian',
    });
    expect([status, json.detail]).to.deep.equal([400, { field: 'poolName' }]);
  });

  it('do not include dots, which are path segments', () => {
    for (const dots of ['.', '..'])
      expect(readName('sandbox', dots), dots).to.deep.equal({ local: dots });
  });

  it('that are malformed are refused by their field', async () => {
    const { tenant } = server;
    const sandboxes = [`.${id}`, 'local.', 'local.nope', `local.local.${id}`, `Local.${id}`];
    const pools = [
      '::shells',
      'local::',
      'local::local::shells',
      'local::Shells',
      'lo.cal::shells',
    ];
    const asked = [
      ...sandboxes.flatMap((name) => [
        ['sandboxId', tenant.get(`/sandboxes/${name}`)] as const,
        ['sandboxId', tenant.delete(`/sandboxes/${name}`)] as const,
        ['sandboxId', tenant.get(`/sandboxes/${name}/processes`)] as const,
      ]),
      ...pools.flatMap((name) => [
        ['name', tenant.get(`/sandboxpools/${name}`)] as const,
        ['poolName', tenant.post('/sandboxes', { poolName: name })] as const,
        ['poolName', tenant.get(`/sandboxes?poolName=${name}`)] as const,
      ]),
    ];
    for (const [field, answer] of asked) {
      const { status, json } = await answer;
      expect([status, json.errorCode, json.detail]).to.deep.equal([
        400,
        'INVALID_ARGUMENT',
        { field },
      ]);
    }
  });

  it('that are unknown get 404, and so do names without a known cluster', async () => {
    for (const name of ['local.0190d4a5-7b1e-4c3a-9f00-000000000001', 'nope', 'local:nope'])
      expect((await server.tenant.get(`/sandboxes/${name}`)).json.errorCode).to.equal(
        'SANDBOX_NOT_FOUND',
      );
    for (const name of ['local::nope', 'No', 'local:shells'])
      expect((await server.tenant.get(`/sandboxpools/${name}`)).json.errorCode).to.equal(
        'POOL_NOT_FOUND',
      );
  });
});

describe('a deprecated operation', () => {
  it('shows since when, its replacement, and the date of removal if known', async () => {
    for (const sunset of [undefined, 'Thu, 31 Jan 2030 00:00:00 GMT']) {
      const server = await aServer(sunset === undefined ? {} : { sunset });
      const { headers } = await server.tenant.post(
        '/sandboxes/0190d4a5-7b1e-7c3a-9f00-000000000001/exec',
        { command: 'true' },
      );

      expect(headers['deprecation']).to.match(/^@\d+$/);
      expect(headers['link']).to.equal(
        '</sandboxes/0190d4a5-7b1e-7c3a-9f00-000000000001/processes>; rel="successor-version"',
      );
      expect(headers['sunset']).to.equal(sunset);
      expect((await server.tenant.get('/sandboxes')).headers).not.to.have.any.keys(
        'deprecation',
        'sunset',
        'link',
      );
      await server.stop();
    }
  });
});
