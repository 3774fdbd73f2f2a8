import { expect } from 'chai';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { request, type RequestOptions } from 'node:https';
import { connect } from 'node:tls';
import { WebSocket } from 'ws';
import { WaitingServer } from '../../src/http/server/waiting-server.ts';
import { terminalUpgrades } from '../../src/http/terminal/terminal.ts';
import { aCertificate, type Certificate } from '../../local-cluster/a-certificate.ts';
import { eventually } from '../support/harness/eventually.ts';
import { connectRaw } from '../support/harness/http-client.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { aServer, type TestServer } from './a-server.ts';
import { anEngine } from '../support/harness/engine-operations.ts';
import { FakeTerminal } from './terminal-support.ts';

/** Enough to shake hands, also on a busy machine. */
const HASTY_MS = 5_000;

describe('HTTPS', () => {
  let certificate: Certificate;
  let server: TestServer;

  before(function () {
    const made = aCertificate();
    if (!made) return skipBecause(this, 'there is no openssl to make a certificate with');
    certificate = made;
  });
  after(() => {
    if (certificate) rmSync(certificate.folder, { recursive: true });
  });
  beforeEach(async () => {
    server = await aServer({ tls: certificate });
  });
  afterEach(() => server.stop());

  const ask = async (
    path: string,
    options: RequestOptions = {},
    body = '',
  ): Promise<{ status: number; text: string; protocol: string | null }> => {
    const sent = request({
      host: '127.0.0.1',
      port: server.port,
      path,
      ca: certificate.cert,
      agent: false,
      ...options,
    });
    sent.end(body);
    const [response] = (await once(sent, 'response')) as [import('node:http').IncomingMessage];
    const { socket } = response;
    let text = '';
    for await (const chunk of response) text += String(chunk);
    return {
      status: response.statusCode ?? 0,
      text,
      protocol:
        'getProtocol' in socket ? (socket as import('node:tls').TLSSocket).getProtocol() : null,
    };
  };

  it('serves the API by TLS 1.3 and 1.2, and refuses older versions', async () => {
    expect(await ask('/healthz')).to.deep.equal({
      status: 200,
      text: '{"status":"ok"}',
      protocol: 'TLSv1.3',
    });
    expect((await ask('/healthz', { maxVersion: 'TLSv1.2' })).protocol).to.equal('TLSv1.2');
    const old = await ask('/healthz', {
      minVersion: 'TLSv1',
      maxVersion: 'TLSv1.1',
      ciphers: 'DEFAULT@SECLEVEL=0',
    }).catch((error: unknown) => error);
    expect(old).to.be.instanceOf(Error);
  });

  it('accepts bodies, and ignores upgrades to other protocols than WebSocket', async () => {
    const headers = {
      'SERVICE-API-KEY': server.tenant.key ?? '',
      'Content-Type': 'application/json',
      'Content-Length': 20,
    };
    expect(
      (await ask('/sandboxes', { method: 'POST', headers }, '{"poolName": "nope"}')).text,
    ).to.contain('pool not found');
    expect(
      (await ask('/healthz', { headers: { Connection: 'Upgrade', Upgrade: 'h2c' } })).status,
    ).to.equal(200);
  });

  it('disconnects a client without a handshake, and one that speaks plain HTTP', async () => {
    const hasty = await aServer({ tls: certificate, limits: { headersTimeoutMs: HASTY_MS } });
    const silent = await connectRaw(hasty.port);
    const plain = await connectRaw(hasty.port);
    plain.socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');

    expect([await silent.closed(), (await plain.closed()).includes('HTTP/1.1')]).to.deep.equal([
      '',
      false,
    ]);
    expect((await ask('/healthz', { port: hasty.port })).status).to.equal(200);
    await hasty.stop();
  });

  it('stops even during an unfinished handshake', async () => {
    const limits = { headersTimeoutMs: 300_000, requestTimeoutMs: 300_000 };
    const stopping = await aServer({ tls: certificate, limits });
    const silent = await connectRaw(stopping.port);
    expect((await ask('/healthz', { port: stopping.port })).status).to.equal(200); // behind it
    let isOver = false;
    void stopping.stop(50).then(() => {
      isOver = true;
    });

    await eventually(() => isOver, 'it has stopped');
    expect(await silent.closed()).to.equal('');
  });

  it('hands over to the started daemon at once, even during an unfinished handshake', async () => {
    let told: (port: number) => void = () => {};
    const listens = new Promise<number>((resolve) => {
      told = resolve;
    });
    const waiting = new WaitingServer({
      listen: { host: '127.0.0.1', port: 0 },
      tls: certificate,
      said: (outcome) => 'port' in outcome && told(outcome.port),
    });
    waiting.say('it waits');
    const port = await listens;
    const silent = await connectRaw(port);
    expect((await ask('/healthz', { port })).status).to.equal(200);
    let isOver = false;
    void waiting.stop().then(() => {
      isOver = true;
    });

    await eventually(() => isOver, 'it has stopped');
    expect(await silent.closed()).to.equal('');
  });

  it('disconnects a client whose headers arrive too slowly', async () => {
    const hasty = await aServer({ tls: certificate, limits: { headersTimeoutMs: HASTY_MS } });
    const socket = connect({ port: hasty.port, host: '127.0.0.1', ca: certificate.cert });
    await once(socket, 'secureConnect');
    socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\nA: ');
    let text = '';
    for await (const chunk of socket) text += String(chunk);

    expect(text).to.contain('REQUEST_TIMEOUT');
    await hasty.stop();
  });

  it('carries terminals', async () => {
    const terminals: FakeTerminal[] = [];
    const operations = anEngine();
    const upgrades = terminalUpgrades({
      operations: {
        openTerminal: async (asked) => {
          const made = new FakeTerminal(asked);
          terminals.push(made);
          return made.opened();
        },
      },
      log: quietLog,
      clock: operations.clock,
      clusterId: 'local',
    });
    const secure = await aServer({ tls: certificate, upgrade: upgrades.upgrade });
    const ws = new WebSocket(
      `wss://127.0.0.1:${secure.port}/ws/clusters/local/sandboxes/local.abc/terminal?token=t`,
      { ca: certificate.cert },
    );
    await once(ws, 'open');
    ws.send('echo hello\n');
    terminals[0]?.print('hello');
    const [output] = (await once(ws, 'message')) as [Buffer];

    expect([String(output), terminals[0]?.request.sandboxId]).to.deep.equal(['hello', 'abc']);
    ws.terminate();
    await upgrades.stop();
    await secure.stop();
  });
});
