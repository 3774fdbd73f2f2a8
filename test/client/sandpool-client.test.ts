import { expect } from 'chai';
import { ApiError, ConnectionFailed } from '../../src/cli/client/api-error.ts';
import { SandpoolClient } from '../../src/cli/client/sandpool-client.ts';
import { freePorts } from '../../local-cluster/control-plane/free-ports.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';
import { aStubServer, type StubServer } from './client-support.ts';

describe('the client', () => {
  let server: StubServer;
  let client: SandpoolClient;
  beforeEach(async () => {
    server = await aStubServer();
    client = new SandpoolClient({ server: server.url, apiKey: 'spk_the_key', deadlineMs: 30_000 });
  });
  afterEach(async () => {
    client.close();
    await server.close();
  });

  const CALLS: readonly [
    string,
    (api: SandpoolClient) => Promise<unknown>,
    { method: string; url: string; body?: unknown },
  ][] = [
    [
      'claims a sandbox',
      (api) => api.claimSandbox({ poolName: 'p', idleTimeout: '5m' }),
      { method: 'POST', url: '/sandboxes', body: { poolName: 'p', idleTimeout: '5m' } },
    ],
    ['gets a sandbox', (api) => api.getSandbox('a/b'), { method: 'GET', url: '/sandboxes/a%2Fb' }],
    [
      'lists sandboxes',
      (api) => api.listSandboxes({ poolName: 'p', phase: 'Running', limit: 5, offset: 10 }),
      { method: 'GET', url: '/sandboxes?poolName=p&phase=Running&limit=5&offset=10' },
    ],
    [
      'deletes a sandbox',
      (api) => api.deleteSandbox('s'),
      { method: 'DELETE', url: '/sandboxes/s' },
    ],
    [
      'sets an idle timeout',
      (api) => api.setIdleTimeout('s', '30m'),
      { method: 'PUT', url: '/sandboxes/s/idle-timeout', body: { idleTimeout: '30m' } },
    ],
    [
      'runs a command',
      (api) => api.exec('s', { command: ['a', 'b'], stdin: 'in' }),
      { method: 'POST', url: '/sandboxes/s/exec', body: { command: ['a', 'b'], stdin: 'in' } },
    ],
    [
      'asks for a token',
      (api) => api.createExecToken('s'),
      { method: 'POST', url: '/sandboxes/s/exec-token' },
    ],
    [
      'creates a pool',
      (api) => api.createPool({ name: 'p', templateName: 't', replicas: 2 }),
      { method: 'POST', url: '/sandboxpools', body: { name: 'p', templateName: 't', replicas: 2 } },
    ],
    ['gets a pool', (api) => api.getPool('p'), { method: 'GET', url: '/sandboxpools/p' }],
    [
      'lists pools',
      (api) => api.listPools({ all: true }),
      { method: 'GET', url: '/sandboxpools?all=true' },
    ],
    [
      'updates a pool',
      (api) => api.updatePool('p', { replicas: 9 }),
      { method: 'PUT', url: '/sandboxpools/p', body: { replicas: 9 } },
    ],
    ['deletes a pool', (api) => api.deletePool('p'), { method: 'DELETE', url: '/sandboxpools/p' }],
    [
      'deletes a pool by force',
      (api) => api.deletePool('p', { force: true }),
      { method: 'DELETE', url: '/sandboxpools/p?force=true' },
    ],
    [
      'creates a key',
      (api) => api.createApiKey({ name: 'n' }),
      { method: 'POST', url: '/api-keys', body: { name: 'n' } },
    ],
    [
      'promotes a key',
      (api) => api.promoteApiKey('n/k'),
      { method: 'POST', url: '/admin/api-keys/n%2Fk/promote' },
    ],
    ['gets quotas', (api) => api.getQuotas(), { method: 'GET', url: '/quotas' }],
    [
      'gets the quotas of a user',
      (api) => api.getQuotasOf('t', 'u'),
      { method: 'GET', url: '/admin/quotas/t/u' },
    ],
    [
      'sets the quotas of a user',
      (api) => api.setQuotasOf('t', 'u', { pools: 3 }),
      { method: 'PUT', url: '/admin/quotas/t/u', body: { pools: 3 } },
    ],
    [
      'creates a key for a tenant',
      (api) => api.createApiKeyForTenant({ team: 't', user: 'u' }),
      { method: 'POST', url: '/admin/api-keys', body: { team: 't', user: 'u' } },
    ],
    ['asks for readiness', (api) => api.readiness(), { method: 'GET', url: '/readyz' }],
  ];
  for (const [what, call, expected] of CALLS) {
    it(what, async () => {
      server.answer = () => ({
        body: { sandbox: { sandboxId: 's' }, template: { name: 'p' }, token: 't' },
      });
      await call(client);
      const [seen] = server.seen;
      expect({
        method: seen?.method,
        url: seen?.url,
        ...(seen?.body === undefined ? {} : { body: seen.body }),
      }).to.deep.equal(expected);
      expect(seen?.headers['service-api-key']).to.equal('spk_the_key');
    });
  }

  it('takes envelopes off', async () => {
    server.answer = () => ({
      status: 201,
      body: { sandbox: { sandboxId: 's', status: 'Running' } },
    });
    expect(await client.claimSandbox({ poolName: 'p' })).to.deep.equal({
      sandboxId: 's',
      status: 'Running',
    });
  });

  it('rejects with all that an error body tells', async () => {
    server.answer = () => ({
      status: 429,
      headers: { 'retry-after': '5' },
      body: {
        error: 'no idle pods available in pool',
        errorCode: 'POOL_EXHAUSTED',
        detail: { idle: 0, hint: 'raise replicas' },
      },
    });
    const error = (await rejection(client.claimSandbox({ poolName: 'p' }))) as ApiError;
    expect(error).to.be.instanceOf(ApiError);
    expect({ ...error, message: error.message }).to.deep.include({
      message: 'no idle pods available in pool',
      status: 429,
      errorCode: 'POOL_EXHAUSTED',
      requestId: 'req-1',
      retryAfter: 5,
      detail: { idle: 0, hint: 'raise replicas' },
    });
  });

  it('copes with an error that has no body of ours', async () => {
    server.answer = () => ({ status: 502, text: '<html>bad gateway</html>' });
    const error = (await rejection(client.getSandbox('s'))) as ApiError;
    expect([error.status, error.errorCode, error.message]).to.deep.equal([
      502,
      undefined,
      'the server answered 502',
    ]);
  });

  it('says so when a success is not JSON', async () => {
    server.answer = () => ({ text: 'hello' });
    expect((await rejection(client.getSandbox('s'))).message).to.match(/did not answer JSON/);
  });

  it('gives up by its deadline', async () => {
    server.answer = () => undefined;
    const hasty = new SandpoolClient({ server: server.url, apiKey: 'k', deadlineMs: 50 });
    const error = (await rejection(hasty.getSandbox('s'))) as ConnectionFailed;
    hasty.close();
    expect([error.name, error.code]).to.deep.equal(['ConnectionFailed', 'DEADLINE']);
  });

  it('gives a command its own time beside the deadline', async () => {
    let answer = (): void => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    server.answer = async ({ url }) => {
      if (!url.endsWith('/exec')) return undefined;
      await answered;
      return { body: { exitCode: 0 } };
    };
    const hasty = new SandpoolClient({ server: server.url, apiKey: 'k', deadlineMs: 50 });
    const command = hasty.exec('s', {
      command: 'true',
      timeoutSeconds: NEVER_COMES_MS / 1_000,
    });
    await rejection(hasty.getSandbox('s')); // its deadline is over, and the command's was to be before
    answer();
    expect(await command).to.deep.equal({ exitCode: 0 });
    hasty.close();
  });

  it('can be told to give up', async () => {
    server.answer = () => undefined;
    const abort = new AbortController();
    const call = rejection(client.getSandbox('s', { signal: abort.signal }));
    abort.abort(new Error('enough'));
    expect((await call).message).to.equal('enough');
  });

  it('tells a refused connection by its code', async () => {
    const [port] = await freePorts(1);
    const nobody = new SandpoolClient({ server: `http://127.0.0.1:${port}`, apiKey: 'k' });
    const error = (await rejection(nobody.getSandbox('s'))) as ConnectionFailed;
    nobody.close();
    expect([error.name, error.code]).to.deep.equal(['ConnectionFailed', 'ECONNREFUSED']);
  });

  it('says that there is no key, and not that there is no connection', async () => {
    const keyless = new SandpoolClient({ server: server.url, apiKey: 'a\nb' });
    const error = await rejection(keyless.getSandbox('s'));
    keyless.close();
    expect(error.message).to.match(/^there is no API key that can be sent: /);
  });

  it('follows no redirect, so that the key goes nowhere else', async () => {
    server.answer = () => ({ status: 302, headers: { location: 'http://127.0.0.1:1/' }, body: {} });
    expect(((await rejection(client.getSandbox('s'))) as ApiError).status).to.equal(302);
    expect(server.seen).to.have.length(1);
  });
});
