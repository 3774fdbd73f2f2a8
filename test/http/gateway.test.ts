import { expect } from 'chai';
import type { CountedEntry } from '../../src/contracts/audit.ts';
import { gatewaySuite } from '../contracts/gateway.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';
import { Turns } from '../../src/http/limits/turns.ts';
import { eventually } from '../support/harness/eventually.ts';
import { connectRaw } from '../support/harness/http-client.ts';
import { mayConcern } from '../../src/model/approvals/policy.ts';
import { rulesOf } from './an-approving-server.ts';
import { aGateway, CONNECTIONS, type GatewayUnderTest } from './gateway-support.ts';

it('the audit counts callers of endpoints, and omits refused ones', async () => {
  const counted: CountedEntry[] = [];
  const under = await aGateway({
    audit: {
      count: (entry) => {
        counted.push(entry);
      },
    },
  });
  await under.serve((_request, response) => response.end('of the sandbox'));
  await under.tenant.get(`/sandboxes/${under.id}/endpoints/web/secret?path`);
  await under.stranger.get(`/sandboxes/${under.id}/endpoints/web/`);
  await under.stop();

  expect(counted.map(({ caller: { user }, ...entry }) => ({ user, ...entry }))).to.deep.equal([
    {
      user: 'ada',
      kind: 'open',
      operation: 'openEndpoint',
      params: { sandboxId: under.id, endpointName: 'web' },
    },
  ]);
});

it('the gateway refuses requests of a tenant beyond its queue', async () => {
  let time = 0;
  const under = await aGateway({
    // each turn of the event loop has time for one request of a tenant
    turns: new Turns({ metrics: silentMetrics, now: () => (time += 30), mostWaiting: 16 }),
  });
  await under.serve((_request, response) => response.end('of the sandbox'));
  const connection = await connectRaw(under.port);
  const path = `/sandboxes/${under.id}/endpoints/web/`;
  const ask = `GET ${path} HTTP/1.1\r\nHost: x\r\nSERVICE-API-KEY: ${under.key}\r\n\r\n`;
  connection.socket.write(ask.repeat(24));
  await eventually(
    () => connection.received().includes('HTTP/1.1 429'),
    'some are refused',
    connection.received,
  );
  connection.socket.destroy();
  await under.stop();
});

for (const [connection, dial] of Object.entries(CONNECTIONS))
  gatewaySuite(connection, () => ({ dial }));

describe('refusals of the gateway', () => {
  let under: GatewayUnderTest;
  beforeEach(async () => {
    under = await aGateway();
    await under.serve((_request, response) => response.end('of the sandbox'));
  });
  afterEach(() => under.stop());

  it('require a key, and tell other tenants the same as for unknown endpoints', async () => {
    const path = `/sandboxes/${under.id}/endpoints/web/`;
    expect((await under.anyone.get(path)).json).to.include({ errorCode: 'API_KEY_REQUIRED' });
    expect((await under.anyone.get(path)).status).to.equal(401);
    expect((await under.anyone.get(path, { key: 'sk_wrong' })).json.errorCode).to.equal(
      'INVALID_API_KEY',
    );
    const unknown = await under.stranger.get(
      '/sandboxes/0190d4a5-7b1e-7c3a-9f00-00000000ffff/endpoints/web/',
    );
    for (const other of [under.stranger, under.colleague, under.admin]) {
      const answer = await other.get(path);
      expect(answer.status).to.equal(404);
      expect(answer.json).to.deep.equal(unknown.json);
    }
  });

  it('list the existing endpoints', async () => {
    const { status, json } = await under.tenant.get(`/sandboxes/${under.id}/endpoints/other/`);
    expect(status).to.equal(404);
    expect(json).to.deep.include({
      errorCode: 'ENDPOINT_NOT_FOUND',
      detail: { endpoints: ['web'] },
    });
    expect(
      (await under.tenant.get(`/sandboxes/${under.id}/endpoints/constructor/`)).status,
    ).to.equal(404);
  });

  it('are 409 for a sandbox that is not running, and 502 if nothing listens', async () => {
    under.lead(1);
    const { status, json, headers } = await under.tenant.get(
      `/sandboxes/${under.id}/endpoints/web/`,
    );
    expect(status).to.equal(502);
    expect(json.errorCode).to.equal('ENDPOINT_UNREACHABLE');
    expect(headers['content-type']).to.equal('application/json; charset=utf-8');
    under.operations.driver.hold('release');
    const deleted = under.tenant.delete(`/sandboxes/${under.id}`);
    await eventually(
      () => under.operations.sandboxes.get(under.id)?.status === 'Stopping',
      'it is being ended',
    );
    expect(
      (await under.tenant.get(`/sandboxes/${under.id}/endpoints/web/`)).json.errorCode,
    ).to.equal('SANDBOX_NOT_RUNNING');
    under.operations.driver.letGo('release');
    await deleted;
    expect(under.operations.open.endpoints).to.equal(0);
  });

  it('of a long body come before its end', async () => {
    const raw = await connectRaw(under.port);
    raw.socket.write(
      `POST /sandboxes/${under.id}/endpoints/other/ HTTP/1.1\r\nHost: a\r\nSERVICE-API-KEY: ${under.key}\r\nContent-Length: 1000000000\r\n\r\nbegun`,
    );
    expect(await raw.closed()).to.match(/^HTTP\/1\.1 404 [\s\S]*ENDPOINT_NOT_FOUND/);
  });

  it('of a long body reach a client that reads only after writing', async () => {
    const raw = await connectRaw(under.port);
    raw.socket.pause();
    raw.socket.write(
      `POST /sandboxes/${under.id}/endpoints/other/ HTTP/1.1\r\nHost: a\r\nSERVICE-API-KEY: ${under.key}\r\nContent-Length: ${6 << 20}\r\n\r\n`,
    );
    await new Promise((resolve) => {
      raw.socket.write(Buffer.alloc(6 << 20), resolve);
    });
    raw.socket.resume();
    expect(await raw.closed()).to.match(/^HTTP\/1\.1 404 [\s\S]*ENDPOINT_NOT_FOUND/);
  });

  it('apply to every request and upgrade that a rule gates', async () => {
    let rules = rulesOf('require operation=openEndpoint');
    const gate = {
      rulesFor: (operation: string, method: string) =>
        rules.filter((rule) => mayConcern(rule, { operation, method })),
    };
    const held = await aGateway({ gate });
    const interpreter = await aGateway({ gate, port: 49_999 });
    try {
      await held.serve((_, response) => response.end('reached'));
      const path = `/sandboxes/local.${held.id}/endpoints/web/`;
      const [got, posted] = [await held.tenant.get(path), await held.tenant.post(path, {})];
      for (const { status, json } of [got, posted])
        expect([status, json.errorCode]).to.deep.equal([403, 'APPROVAL_DENIED']);
      const raw = await connectRaw(held.port);
      raw.socket.write(
        `GET ${path} HTTP/1.1\r\nHost: a\r\nSERVICE-API-KEY: ${held.key}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
      );
      expect(await raw.closed()).to.match(/^HTTP\/1\.1 403 [\s\S]*APPROVAL_DENIED/);

      rules = rulesOf('deny operation=execInSandbox');
      expect((await held.tenant.get(path)).text).to.equal('reached');
      const toInterpreter = `/sandboxes/local.${interpreter.id}/endpoints/web/`;
      expect((await interpreter.tenant.get(toInterpreter)).json.errorCode).to.equal(
        'APPROVAL_DENIED',
      );
      expect(held.operations.open.endpoints).to.equal(0);
    } finally {
      await held.stop(0);
      await interpreter.stop(0);
    }
  });
});
