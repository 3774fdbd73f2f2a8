import { expect } from 'chai';
import { ApiError, ConnectionFailed } from '../../src/cli/client/api-error.ts';
import { SandpoolClient } from '../../src/cli/client/sandpool-client.ts';
import { freePorts } from '../../local-cluster/control-plane/free-ports.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';
import { aStubServer, type StubServer } from './client-support.ts';

const aSandbox = (of: SandpoolClient) => of.call('getSandbox', { params: { sandboxId: 's' } });

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

  it('puts parts of the path, the query and the body into their documented places', async () => {
    const admin = new SandpoolClient({ server: server.url, apiKey: 'k', namespace: 'team-blue' });
    await client.call('getReadiness');
    await client.call('setIdleTimeout', {
      params: { sandboxId: 'a/b' },
      body: { idleTimeout: '30m' },
    });
    await client.call('listSandboxes', {
      query: { poolName: 'p', limit: 5, offset: undefined, metadata: { a: '1' } },
    });
    await client.call('getQuotasOf', { params: { team: 't', user: 'u' } });
    await admin.call('deletePool', { params: { name: 'p' }, query: { force: true } });
    admin.close();

    expect(
      server.seen.map(({ method, url, body }) => [method, url, ...(body ? [body] : [])]),
    ).to.deep.equal([
      ['GET', '/readyz'],
      ['PUT', '/sandboxes/a%2Fb/idle-timeout', { idleTimeout: '30m' }],
      ['GET', '/sandboxes?poolName=p&limit=5&metadata.a=1'],
      ['GET', '/admin/quotas/t/u'],
      ['DELETE', '/sandboxpools/p?force=true&namespace=team-blue'],
    ]);
    expect(server.seen[0]?.headers['service-api-key']).to.equal('spk_the_key');
  });

  it('rejects with all fields of an error body', async () => {
    server.answer = () => ({
      status: 429,
      headers: { 'retry-after': '5' },
      body: {
        error: 'no idle pods available in pool',
        errorCode: 'POOL_EXHAUSTED',
        detail: { idle: 0, hint: 'raise replicas' },
      },
    });
    const error = (await rejection(
      client.call('claimSandbox', { body: { poolName: 'p' } }),
    )) as ApiError;
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

  it("handles an error without the service's body", async () => {
    server.answer = () => ({ status: 502, text: '<html>bad gateway</html>' });
    const error = (await rejection(aSandbox(client))) as ApiError;
    expect([error.status, error.errorCode, error.message]).to.deep.equal([
      502,
      undefined,
      'the server answered 502',
    ]);
  });

  it('reports a success that is not JSON', async () => {
    server.answer = () => ({ text: 'hello' });
    expect((await rejection(aSandbox(client))).message).to.match(/did not answer JSON/);
  });

  it('times out at its deadline', async () => {
    server.answer = () => undefined;
    const hasty = new SandpoolClient({ server: server.url, apiKey: 'k', deadlineMs: 50 });
    const error = (await rejection(aSandbox(hasty))) as ConnectionFailed;
    hasty.close();
    expect([error.name, error.code]).to.deep.equal(['ConnectionFailed', 'DEADLINE']);
  });

  it('extends the deadline by the time of a command', async () => {
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
    const command = hasty.call('execInSandbox', {
      params: { sandboxId: 's' },
      body: {
        command: 'true',
        timeoutSeconds: NEVER_COMES_MS / 1_000,
      },
    });
    await rejection(aSandbox(hasty)); // its deadline is over, and the command's was to be before
    answer();
    expect(await command).to.deep.equal({ exitCode: 0 });
    hasty.close();
  });

  it('can be cancelled', async () => {
    server.answer = () => undefined;
    const abort = new AbortController();
    const call = rejection(
      client.call('getSandbox', { params: { sandboxId: 's' }, signal: abort.signal }),
    );
    abort.abort(new Error('enough'));
    expect((await call).message).to.equal('enough');
  });

  it('reports a refused connection by its code', async () => {
    const [port] = await freePorts(1);
    const nobody = new SandpoolClient({ server: `http://127.0.0.1:${port}`, apiKey: 'k' });
    const error = (await rejection(aSandbox(nobody))) as ConnectionFailed;
    nobody.close();
    expect([error.name, error.code]).to.deep.equal(['ConnectionFailed', 'ECONNREFUSED']);
  });

  it('reports a missing key as such, not as a missing connection', async () => {
    const keyless = new SandpoolClient({ server: server.url, apiKey: 'a\nb' });
    const error = await rejection(aSandbox(keyless));
    keyless.close();
    expect(error.message).to.match(/^the API key cannot be sent: /);
  });

  it('follows no redirects, so that the key stays private', async () => {
    server.answer = () => ({ status: 302, headers: { location: 'http://127.0.0.1:1/' }, body: {} });
    expect(((await rejection(aSandbox(client))) as ApiError).status).to.equal(302);
    expect(server.seen).to.have.length(1);
  });
});
