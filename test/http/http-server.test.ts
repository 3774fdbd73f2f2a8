import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { createHttpServer } from '../../src/http/server/http-server.ts';
import { anEngine } from '../support/harness/engine-operations.ts';
import { connectRaw, exchangeRaw, HttpClient, parseRaw } from '../support/harness/http-client.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { rejection } from '../support/harness/rejection.ts';
import { aServer } from './a-server.ts';
import { clientsOf } from '../../src/http/limits/clients.ts';
import { anAdmission } from '../support/fakes/an-admission.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

const upgrade = (protocol: string, extra = ''): string =>
  `GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n${extra}\r\n`;

describe('the HTTP server', () => {
  it('reports that its address is in use', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const operations = anEngine();
    const { clock } = operations;
    const clients = clientsOf({ operations, clock, log: quietLog });
    const server = createHttpServer({
      watchers: { log: quietLog, metrics: silentMetrics },
      terms: { clusterId: 'local', sunset: undefined },
      clients,
      admission: anAdmission({ clients }),
      operations,
      clock,
    });
    expect(await rejection(server.start({ host: '127.0.0.1', port }))).to.have.property(
      'code',
      'EADDRINUSE',
    );
    other.close();
  });

  /** A server with one command under way, which ends when told. */
  const busyServer = async () => {
    const server = await aServer();
    await server.tenant.post('/sandboxpools', { name: 'shells', templateName: 'default' });
    const { json } = await server.tenant.post('/sandboxes', { poolName: 'shells' });
    let finish: () => void = () => {};
    let aborted: AbortSignal | undefined;
    const started = new Promise<void>((begun) => {
      server.operations.driver.onExec = (_id, _request, signal) =>
        new Promise((resolve, reject) => {
          aborted = signal;
          signal.addEventListener('abort', () => reject(new Error('aborted')));
          finish = () => resolve({ exitCode: 5 });
          begun();
        });
    });
    const client = new HttpClient(server.port, server.tenant.key);
    const answer = client.post(`/sandboxes/${json.sandbox!.sandboxId!}/exec`, { command: 'x' });
    await started;
    return { server, client, answer, finish: () => finish(), signal: () => aborted };
  };

  it('finishes pending requests when it stops, and accepts no more', async () => {
    const { server, answer, finish } = await busyServer();
    const idle = await connectRaw(server.port);
    idle.socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(idle.socket, 'data');
    const stopped = server.stop(10_000);
    await idle.closed();
    const refused = new HttpClient(server.port);
    expect(await rejection(refused.get('/healthz'))).to.have.property('code', 'ECONNREFUSED');
    finish();
    const { status, headers, text } = await answer;
    expect([status, headers.connection]).to.deep.equal([200, 'close']);
    expect(text).to.contain('"exitCode":5');
    await stopped;
  });

  it('answers normally before its stop, and closes each connection after the answer', async () => {
    const server = await aServer();
    expect((await server.anyone.get('/healthz')).headers['connection']).to.equal('keep-alive');

    server.leave();

    for (const path of ['/healthz', '/sandboxes']) {
      const { status, headers } = await server.tenant.get(path);
      expect([status, headers['connection']]).to.deep.equal([200, 'close']);
    }
    await server.stop();
  });

  it('answers unfinished requests with 503, aborts them, and does not blame the client', async () => {
    const { server, answer, signal } = await busyServer();
    await server.stop(50);
    const { status, headers, json } = await answer;
    expect([status, json.errorCode, headers['retry-after'], headers['connection']]).to.deep.equal([
      503,
      'UNAVAILABLE',
      '1',
      'close',
    ]);
    expect(headers['x-request-id']).to.equal(server.log.at(-1)?.fields['requestId']);
    expect(signal()?.aborted).to.equal(true);
    expect(server.log.at(-1)?.fields.path, 'its operation is over too').to.match(/exec$/);
    expect(server.log.at(-1)?.fields).to.include({ status: 503, errorCode: 'UNAVAILABLE' });
  });

  it('answers 503 on a connection in use during its stop', async () => {
    const server = await aServer();
    const connection = await connectRaw(server.port);
    connection.socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n');
    await server.anyone.get('/healthz');
    const stopped = server.stop(10_000);
    connection.socket.write('\r\n');
    const answer = parseRaw(await connection.closed());
    expect([
      answer.status,
      answer.json.errorCode,
      answer.headers['retry-after'],
      answer.headers.connection,
    ]).to.deep.equal([503, 'UNAVAILABLE', '1', 'close']);
    await stopped;
  });

  it('closes connections beyond the maximum', async () => {
    const server = await aServer({ limits: { maxConnections: 2 } });
    const kept = [await connectRaw(server.port), await connectRaw(server.port)];
    const surplus = await connectRaw(server.port);
    expect(await surplus.closed()).to.equal('');
    for (const { socket } of kept) socket.destroy();
    await server.stop();
  });

  it('passes upgrades to WebSocket, and closes those at the end', async () => {
    const seen: string[] = [];
    const server = await aServer({
      upgrade: (request, socket) => {
        seen.push(request.url ?? '');
        socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n');
      },
    });
    const connection = await connectRaw(server.port);
    connection.socket.write(upgrade('websocket'));
    await once(connection.socket, 'data');
    expect(seen).to.deep.equal(['/healthz']);
    await server.stop(50);
    expect(await connection.closed()).to.equal('HTTP/1.1 101 Switching Protocols\r\n\r\n');
  });

  it('ignores a request for another protocol', async () => {
    const server = await aServer({ upgrade: (_request, socket) => void socket.destroy() });
    const old = upgrade('h2c').replace('HTTP/1.1', 'HTTP/1.0');
    expect(parseRaw(await exchangeRaw(server.port, old)).status).to.equal(200);
    const connection = await connectRaw(server.port);
    const body = '{"poolName":"nope"}';
    connection.socket.write(
      `POST /sandboxes HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\nSERVICE-API-KEY: ${server.tenant.key ?? ''}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    connection.socket.write(body);
    await once(connection.socket, 'data');
    expect(parseRaw(connection.received()).json.errorCode).to.equal('POOL_NOT_FOUND');
    connection.socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect(await connection.closed()).to.contain('{"status":"ok"}');
    await server.stop();
  });

  it('ignores an upgrade by POST, or with a body', async () => {
    const server = await aServer({ upgrade: (_request, socket) => void socket.destroy() });
    const body = '{"poolName":"nope"}';
    for (const [method, code] of [
      ['POST', 'POOL_NOT_FOUND'],
      ['PUT', 'METHOD_NOT_ALLOWED'],
    ] as const) {
      const text = `${method} /sandboxes HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\nSERVICE-API-KEY: ${server.tenant.key ?? ''}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
      const connection = await connectRaw(server.port);
      connection.socket.write(text);
      await once(connection.socket, 'data');
      expect(parseRaw(connection.received()).json.errorCode).to.equal(code);
      connection.socket.destroy();
    }
    const connection = await connectRaw(server.port);
    connection.socket.write(upgrade('websocket', 'Content-Length: 4\r\n'));
    connection.socket.write('body');
    await once(connection.socket, 'data');
    expect(parseRaw(connection.received()).status).to.equal(200);
    connection.socket.destroy();
    await server.stop();
  });

  it('answers CONNECT in JSON, and closes the connection', async () => {
    const server = await aServer();
    const answer = parseRaw(
      await exchangeRaw(
        server.port,
        'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n',
      ),
    );
    expect([
      answer.status,
      answer.json.errorCode,
      answer.headers['content-type'],
      answer.headers['connection'],
    ]).to.deep.equal([405, 'METHOD_NOT_ALLOWED', 'application/json; charset=utf-8', 'close']);
    await server.stop();
  });

  it('answers an upgrade like any request if nothing accepts upgrades', async () => {
    const server = await aServer();
    const connection = await connectRaw(server.port);
    connection.socket.write(upgrade('websocket'));
    await once(connection.socket, 'data');
    expect(parseRaw(connection.received()).status).to.equal(200);
    connection.socket.destroy();
    await server.stop();
  });
});
