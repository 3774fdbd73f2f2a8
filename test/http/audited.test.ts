import { expect } from 'chai';
import type { AuditEntry, CountedEntry } from '../../src/contracts/audit.ts';
import { exchangeRaw } from '../support/harness/http-client.ts';
import { aServer, type TestServer } from './a-server.ts';

describe('the audit of requests', () => {
  let server: TestServer;
  let entries: AuditEntry[];
  let counted: CountedEntry[];
  beforeEach(async () => {
    entries = [];
    counted = [];
    server = await aServer({
      audit: {
        note: (entry) => {
          entries.push(entry);
        },
        count: (entry) => {
          counted.push(entry);
        },
      },
    });
  });
  afterEach(() => server.stop());

  const keyIdOf = (apiKey: string): string => apiKey.split('_')[1] ?? '';

  it('includes every write, with caller, operation, outcome and request', async () => {
    await server.tenant.post('/sandboxpools', { name: 'p', templateName: 'default', replicas: 1 });
    const claimed = await server.tenant.post(
      '/sandboxes',
      { poolName: 'p' },
      { headers: { 'X-Request-Id': 'my-request' } },
    );
    const id = String(claimed.json.sandbox?.['sandboxId']);
    await server.tenant.delete(`/sandboxes/${id}`);

    expect(entries.map(({ operation, status }) => [operation, status])).to.deep.equal([
      ['createPool', 201],
      ['claimSandbox', 201],
      ['deleteSandbox', 200],
    ]);
    const [, claim, deletion] = entries;
    expect(claim).to.deep.include({
      requestId: 'my-request',
      operation: 'claimSandbox',
      status: 201,
      errorCode: undefined,
    });
    expect(claim?.target).to.include({ poolName: 'p', sandboxId: id });
    expect(claim?.caller).to.include({ team: 'blue', user: 'ada', role: 'user' });
    expect(deletion?.params).to.deep.equal({ sandboxId: id });
  });

  it('includes refusals by key, role, form and operation', async () => {
    await server.anyone.post('/sandboxes', { poolName: 'p' });
    await server.tenant.post('/admin/api-keys', { team: 'red', user: 'eve' });
    await server.tenant.post('/sandboxes', { poolName: 7 });
    await server.tenant.post('/sandboxes', { poolName: 'nowhere' });

    expect(
      entries.map(({ operation, status, errorCode, caller, target }) => [
        operation,
        status,
        errorCode,
        caller?.user,
        target,
      ]),
    ).to.deep.equal([
      ['claimSandbox', 401, 'API_KEY_REQUIRED', undefined, undefined],
      ['createApiKeyForTenant', 403, 'ADMIN_REQUIRED', 'ada', undefined],
      ['claimSandbox', 400, 'INVALID_ARGUMENT', 'ada', undefined],
      ['claimSandbox', 404, 'POOL_NOT_FOUND', 'ada', { poolName: 'nowhere' }],
    ]);
  });

  it('omits reads, and requests to no operation', async () => {
    await server.tenant.get('/sandboxes');
    await server.tenant.post('/nowhere', {});

    expect(entries).to.deep.equal([]);
  });

  it("counts reads of an admin, and omits a tenant's own reads", async () => {
    await server.tenant.get('/sandboxes');
    await server.admin.get('/admin/api-keys');
    await server.admin.get('/sandboxes/0190d4a5-7b1e-7c3a-9f00-00000000ffff');

    expect(
      counted.map(({ kind, operation, params, caller }) => [kind, operation, params, caller.role]),
    ).to.deep.equal([
      ['read', 'listAllApiKeys', undefined, 'admin'],
      ['read', 'getSandbox', { sandboxId: '0190d4a5-7b1e-7c3a-9f00-00000000ffff' }, 'admin'],
    ]);
    expect(entries).to.deep.equal([]);
  });

  it('never contains a key, whether new or misplaced', async () => {
    const { json } = await server.admin.post('/admin/api-keys', {
      team: 'red',
      user: 'eve',
      name: 'ci',
    });
    const made = String(json.apiKey);
    await server.admin.delete(`/admin/api-keys/${made}`);

    expect(entries[0]?.target).to.deep.equal({
      name: 'team-red/ci',
      team: 'red',
      user: 'eve',
      role: 'user',
      keyId: keyIdOf(made),
    });
    expect(entries[1]?.params).to.deep.equal({ name: `spk_${keyIdOf(made)}_[secret]` });
    expect(JSON.stringify(entries)).to.not.include(made.split('_')[2]);
  });

  it('includes what a parameter was, though it is spelled as in the documentation', async () => {
    await exchangeRaw(
      server.port,
      'DELETE /sandboxpools/{name} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n' +
        `SERVICE-API-KEY: ${server.tenant.key}\r\n\r\n`,
    );
    expect(entries[0]).to.deep.include({ operation: 'deletePool', params: { name: '{name}' } });
  });

  it('shows that an answer was repeated', async () => {
    await server.tenant.post('/sandboxpools', { name: 'p', templateName: 'default', replicas: 1 });
    for (let time = 0; time < 2; time += 1)
      await server.tenant.post(
        '/sandboxes',
        { poolName: 'p' },
        { headers: { 'Idempotency-Key': 'once' } },
      );

    const [first, again] = entries.slice(1);
    expect(first).to.not.have.property('replayed');
    expect(again).to.deep.include({ replayed: true, target: first?.target });
  });
});
