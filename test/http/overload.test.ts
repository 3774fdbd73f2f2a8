import { expect } from 'chai';
import { once } from 'node:events';
import { within } from '../support/harness/a-daemon.ts';
import {
  connectRaw,
  exchangeRaw,
  parseRaw,
  type HttpClient,
} from '../support/harness/http-client.ts';
import { Turns } from '../../src/http/limits/turns.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';
import { aServer } from './a-server.ts';

const GET = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n';

describe('a server overload', () => {
  /** A server whose lists of pools stay under way until they are let go. */
  const aBusyServer = async (maxInFlight: number) => {
    const server = await aServer({ limits: { maxInFlight } });
    const { operations } = server;
    const list = operations.listPools;
    let letGo: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    let started = 0;
    Object.assign(operations, {
      listPools: async (...call: Parameters<typeof list>) => {
        started += 1;
        await held;
        return list(...call);
      },
    });
    const begin = async (clients: readonly HttpClient[]) => {
      const before = started;
      const lists = clients.map((client) => client.get('/sandboxpools'));
      await within('all are under way', () => started === before + clients.length || undefined);
      return lists;
    };
    return { server, begin, letGo };
  };

  it('causes 503 with Retry-After while health still works, and ends', async () => {
    const { server, begin, letGo } = await aBusyServer(4);
    const slow = await begin([server.tenant, server.colleague, server.stranger, server.admin]);

    const refused = [
      await server.tenant.get('/sandboxes'),
      await server.tenant.post('/sandboxes', { poolName: 'x' }),
    ];
    for (const { status, headers, json } of refused)
      expect([status, headers['retry-after'], json.errorCode]).to.deep.equal([
        503,
        '1',
        'UNAVAILABLE',
      ]);
    expect((await server.anyone.get('/healthz')).status).to.equal(200);
    expect((await server.anyone.get('/v1/readyz')).status).to.equal(200);
    letGo();

    expect((await Promise.all(slow)).map(({ status }) => status)).to.deep.equal([
      200, 200, 200, 200,
    ]);
    expect((await server.tenant.get('/sandboxpools')).status).to.equal(200);
    await server.stop();
  });

  it('is prevented by a share per tenant and kind', async () => {
    const { server, begin, letGo } = await aBusyServer(8);
    const slow = await begin([server.tenant, server.tenant]);

    expect((await server.tenant.get('/sandboxpools')).status).to.equal(503);
    expect((await server.tenant.get('/sandboxes')).status).to.equal(200);
    slow.push(...(await begin([server.stranger])));
    letGo();

    expect((await Promise.all(slow)).map(({ status }) => status)).to.deep.equal([200, 200, 200]);
    await server.stop();
  });

  it('by queued requests is refused for their tenant only', async () => {
    let time = 0;
    const server = await aServer({
      // each turn of the event loop has time for one request of a tenant
      turns: new Turns({ metrics: silentMetrics, now: () => (time += 30), mostWaiting: 16 }),
    });
    const ask = (key: string | undefined): string =>
      `GET /sandboxes HTTP/1.1\r\nHost: x\r\nSERVICE-API-KEY: ${key ?? ''}\r\n\r\n`;
    const connection = await connectRaw(server.port);
    // Of one connection, so that all are surely read in the same turn.
    connection.socket.write(ask(server.stranger.key).repeat(24) + ask(server.tenant.key));
    const statuses = await within('all are answered', () => {
      const found = connection.received().match(/(?<=HTTP\/1\.1 )\d+/g) ?? [];
      return found.length === 25 ? found : undefined;
    });
    const flood = statuses.slice(0, 24);
    expect(flood).to.deep.equal(Array.from({ length: 24 }, (_, n) => (n < 1 + 8 ? '200' : '429')));
    expect(connection.received()).to.include('Retry-After: 1\r\n');
    expect(statuses.at(-1)).to.equal('200');
    connection.socket.destroy();
    await server.stop();
  });

  it('does not result from commands, which mostly wait, or from slow bodies', async () => {
    const server = await aServer({ limits: { maxInFlight: 1 } });
    await server.tenant.post('/sandboxpools', { name: 'shells', templateName: 'default' });
    const { json } = await server.tenant.post('/sandboxes', { poolName: 'shells' });
    let finish: () => void = () => {};
    let started = 0;
    server.operations.driver.onExec = () =>
      new Promise((resolve) => {
        started += 1;
        finish = () => resolve({});
      });
    const command = server.tenant.post(`/sandboxes/${json.sandbox?.['sandboxId'] ?? ''}/exec`, {
      command: 'sleep',
    });
    await within('the command runs', () => started === 1 || undefined);
    const drip = await connectRaw(server.port);
    drip.socket.write(
      `POST /sandboxes HTTP/1.1\r\nHost: x\r\nSERVICE-API-KEY: ${server.tenant.key ?? ''}\r\nContent-Length: 100\r\n\r\n{`,
    );

    expect((await server.tenant.get('/sandboxpools')).status).to.equal(200);
    finish();
    expect((await command).status).to.equal(200);
    drip.socket.destroy();
    await server.stop();
  });

  it('on one connection closes it: 32 requests can wait for their answers', async () => {
    const server = await aServer();
    const text = await exchangeRaw(server.port, GET.repeat(1_000));
    const statuses = text.match(/HTTP\/1\.1 \d+/g) ?? [];

    expect(statuses.slice(0, 32)).to.deep.equal(Array.from({ length: 32 }, () => 'HTTP/1.1 200'));
    expect(statuses.slice(32)).to.deep.equal(['HTTP/1.1 503']);
    await server.stop();
  });

  it('closes a connection with 64 times as many behind the first', async () => {
    const { server, letGo } = await aBusyServer(4);
    const connection = await connectRaw(server.port);
    const list = `GET /sandboxpools HTTP/1.1\r\nHost: x\r\nSERVICE-API-KEY: ${server.tenant.key}\r\n\r\n`;
    connection.socket.on('error', () => undefined).write(list + GET.repeat(64 * 32 + 1));
    await within('it is cut', () => connection.socket.closed || undefined);
    expect(connection.received()).to.equal('');
    letGo();
    await server.stop();
  });

  it('does not result from consecutive requests on one connection', async () => {
    const server = await aServer();
    const connection = await connectRaw(server.port);
    for (let n = 0; n < 100; n += 1) {
      connection.socket.write(GET);
      await once(connection.socket, 'data');
    }
    expect(connection.received().match(/HTTP\/1\.1 200/g)).to.have.length(100);
    connection.socket.destroy();
    await server.stop();
  });
});

describe('connections of one address', () => {
  it('are closed beyond its share, and counted until they close', async () => {
    const server = await aServer({ limits: { maxConnectionsPerAddress: 3 } });
    const kept = [
      await connectRaw(server.port),
      await connectRaw(server.port),
      await connectRaw(server.port),
    ];

    expect(await (await connectRaw(server.port)).closed()).to.equal('');
    kept[0]?.socket.destroy();
    await within('its place is free', async () => {
      const connection = await connectRaw(server.port);
      connection.socket.write(GET.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
      return parseRaw(await connection.closed()).status === 200 || undefined;
    });
    for (const { socket } of kept) socket.destroy();
    await server.stop();
  });

  it('have no limit for a trusted proxy', async () => {
    const server = await aServer({
      limits: { maxConnectionsPerAddress: 1 },
      trustedProxies: ['127.0.0.0/8'],
    });
    const kept = [await connectRaw(server.port), await connectRaw(server.port)];

    expect((await server.anyone.get('/healthz')).status).to.equal(200);
    for (const { socket } of kept) socket.destroy();
    await server.stop();
  });
});

describe('bodies in transfer', () => {
  it('have a limit in total, beyond which the oldest is refused', async () => {
    const server = await aServer({ limits: { maxArrivingBytes: 100_000 } });
    const begin = async () => {
      const connection = await connectRaw(server.port);
      connection.socket.write(
        `POST /sandboxes HTTP/1.1\r\nHost: x\r\nSERVICE-API-KEY: ${server.tenant.key ?? ''}\r\nContent-Type: application/json\r\nContent-Length: 90000\r\n\r\n`,
      );
      connection.socket.write(' '.repeat(60_000));
      return connection;
    };
    const oldest = await begin();
    const younger = await begin();

    const { status, headers, json } = parseRaw(await oldest.closed());
    expect([status, headers['retry-after'], json.errorCode]).to.deep.equal([
      503,
      '1',
      'UNAVAILABLE',
    ]);
    younger.socket.write(`${' '.repeat(29_980)}{"poolName":"nope"} `);
    await once(younger.socket, 'data');
    expect(parseRaw(younger.received()).json.errorCode).to.equal('POOL_NOT_FOUND');
    younger.socket.destroy();
    await server.stop();
  });
});
