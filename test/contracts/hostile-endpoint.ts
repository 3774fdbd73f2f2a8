import { once } from 'node:events';
import type { Socket } from 'node:net';
import { expect } from 'chai';
import { WebSocket, WebSocketServer } from 'ws';
import { connectRaw } from '../support/harness/http-client.ts';
import { eventually } from '../support/harness/eventually.ts';
import {
  aGateway,
  ask,
  textOf,
  type EndpointWay,
  type GatewayUnderTest,
} from '../http/gateway-support.ts';

/** Answers each request with these bytes, and leaves the connection open. */
const saying =
  (bytes: string) =>
  (socket: Socket): void => {
    socket.on('data', () => void socket.write(bytes, 'latin1'));
  };

/** What the gateway makes of endpoints that mean harm. As `gatewaySuite`. */
export const hostileEndpointSuite = (connection: string, way: () => EndpointWay): void =>
  void describe(`a hostile endpoint by ${connection}`, () => {
    let under: GatewayUnderTest;
    beforeEach(async () => {
      under = await aGateway(way());
    });
    afterEach(() => under.stop());

    const answerTo = async (
      bytes: string,
    ): Promise<{
      readonly status: number;
      readonly errorCode: string | undefined;
      readonly text: string;
    }> => {
      await under.serveBytes(saying(bytes));
      const { status, json, text } = await under.tenant.get(
        `/sandboxes/${under.id}/endpoints/web/`,
      );
      return { status, errorCode: json.errorCode, text };
    };

    for (const [what, bytes] of [
      ['bytes that are no HTTP', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
      ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 5\r\n\r\nabcde'],
      [
        'a length and chunks',
        'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      ],
      ['a negative length', 'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n'],
      ['a header without a name', 'HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 0\r\n\r\n'],
      ['a header with a NUL', 'HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n'],
      ['a line that is folded', 'HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n'],
      ['giant headers', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`],
      ['endless headers', `HTTP/1.1 200 OK\r\n${'X: y\r\n'.repeat(20_000)}`],
      [
        'a change of protocol that nobody asked for',
        'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
      ],
      [
        'a body that was encoded on the way',
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
      ],
      ['a status below 100', 'HTTP/1.1 099 What\r\nContent-Length: 0\r\n\r\n'],
    ] as const) {
      it(`causes a 502 if it sends ${what}`, async () => {
        const { status, errorCode, text } = await answerTo(bytes);
        expect(status, text).to.equal(502);
        expect(errorCode).to.equal('ENDPOINT_UNREACHABLE');
        await eventually(() => under.operations.open.endpoints === 0, 'the way is closed');
      });
    }

    it('with a length on a 204 is passed on without the length', async () => {
      await under.serveBytes(
        saying('HTTP/1.1 204 No Content\r\nContent-Length: 5\r\nX-Own: 1\r\n\r\n'),
      );
      const { status, headers, text } = await under.tenant.get(
        `/sandboxes/${under.id}/endpoints/web/`,
      );
      expect([status, headers['x-own'], headers['content-length'], text]).to.deep.equal([
        204,
        '1',
        undefined,
        '',
      ]);
    });

    it('that closes the connection silently causes a 502', async () => {
      await under.serveBytes((socket) => socket.once('data', () => socket.destroy()));
      expect((await under.tenant.get(`/sandboxes/${under.id}/endpoints/web/`)).status).to.equal(
        502,
      );
      expect(
        (await under.tenant.post(`/sandboxes/${under.id}/endpoints/web/`, {})).status,
      ).to.equal(502);
    });

    it("that sends less than announced breaks the client's answer", async () => {
      await under.serveBytes((socket) =>
        socket.once('data', () =>
          socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort'),
        ),
      );
      const failure = await ask(under, '/')
        .then(textOf)
        .then(
          () => undefined,
          (error: unknown) => error,
        );
      expect(failure).to.have.property('code', 'ECONNRESET');
    });

    it('that sends more than announced adds nothing to this answer or the next', async () => {
      await under.serveBytes(
        saying(
          'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged',
        ),
      );
      for (let at = 0; at < 3; at += 1) {
        const { status, text } = await under.tenant.get(`/sandboxes/${under.id}/endpoints/web/`);
        expect([200, 502]).to.include(status);
        expect(text).to.not.contain('okHTTP');
      }
    });

    it('cannot inject lines by its reason phrase or odd header bytes', async () => {
      await under.serveBytes((socket) =>
        socket.once('data', () =>
          socket.end(
            'HTTP/1.1 200 caf\xe9 \xff\r\nX-Odd: caf\xe9\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok',
            'latin1',
          ),
        ),
      );
      const raw = await connectRaw(under.port);
      raw.socket.write(
        `GET /sandboxes/${under.id}/endpoints/web/ HTTP/1.1\r\nHost: a\r\nSERVICE-API-KEY: ${under.key}\r\nConnection: close\r\n\r\n`,
      );
      expect(await raw.closed()).to.match(/^HTTP\/1\.1 200 OK\r\nX-Odd: caf\xe9\r\n/);
    });

    it('gets requests whose length no header can falsify', async () => {
      let seen = '';
      await under.serveBytes((socket) =>
        socket.on('data', (bytes: Buffer) => {
          seen += bytes.toString('latin1');
          if (seen.endsWith('0\r\n\r\n') || seen.includes('body'))
            socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
        }),
      );
      const raw = await connectRaw(under.port);
      raw.socket.write(
        `DELETE /sandboxes/${under.id}/endpoints/web/ HTTP/1.1\r\nHost: a\r\nSERVICE-API-KEY: ${under.key}\r\nConnection: close, content-length\r\nContent-Length: 4\r\n\r\nbody`,
      );
      expect(await raw.closed()).to.match(/^HTTP\/1\.1 200 /);
      expect(seen)
        .to.match(/\r\nContent-Length: 4\r\n/)
        .and.to.match(/\r\n\r\nbody$/);
      const both = await connectRaw(under.port);
      both.socket.write(
        `POST /sandboxes/${under.id}/endpoints/web/ HTTP/1.1\r\nHost: a\r\nSERVICE-API-KEY: ${under.key}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      );
      expect(await both.closed()).to.match(/^HTTP\/1\.1 400 /);
      const odd = await connectRaw(under.port);
      odd.socket.write(
        `POST /sandboxes/${under.id}/endpoints/web/ HTTP/1.1\r\nHost: a\r\nSERVICE-API-KEY: ${under.key}\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
      );
      expect(await odd.closed()).to.match(/^HTTP\/1\.1 415 /);
    });
  });

/** WebSockets through the gateway. As `gatewaySuite`. */
export const endpointSocketSuite = (connection: string, way: () => EndpointWay): void =>
  void describe(`WebSockets to an endpoint by ${connection}`, () => {
    let under: GatewayUnderTest;
    beforeEach(async () => {
      under = await aGateway(way());
    });
    afterEach(() => under.stop());

    const open = (
      path = '/socket',
      headers: Record<string, string> = { 'SERVICE-API-KEY': under.key },
    ): WebSocket =>
      new WebSocket(
        `ws://127.0.0.1:${under.port}/v1/sandboxes/${under.id}/endpoints/web${path}`,
        ['own.v1'],
        { headers },
      );

    const refusal = async (socket: WebSocket): Promise<number> => {
      const [, response] = (await once(socket, 'unexpected-response')) as [
        unknown,
        { readonly statusCode: number; resume(): void },
      ];
      response.resume();
      socket.on('error', () => {}).terminate();
      return response.statusCode;
    };

    it('carry messages both ways, and their ends', async () => {
      const upstream = await under.serve(() => {});
      let seen: Record<string, unknown> = {};
      const server = new WebSocketServer({ server: upstream, handleProtocols: () => 'own.v1' });
      server.on('connection', (socket, request) => {
        seen = { ...request.headers, url: request.url };
        socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
        socket.on('close', (code) => {
          seen['closed'] = code;
        });
      });
      const socket = open('/socket?a=b');
      await once(socket, 'open');
      expect(socket.protocol).to.equal('own.v1');
      expect(seen).to.include({ url: '/socket?a=b' }).and.to.not.have.property('service-api-key');
      const long = Buffer.alloc(5 << 20, 'x');
      under.operations.clock.advance(5_000);
      socket.send(long);
      const [echoed] = (await once(socket, 'message')) as [Buffer];
      expect(echoed.equals(long)).to.equal(true);
      expect(under.operations.sandboxes.get(under.id)?.idleExpiresAt).to.equal(
        under.operations.clock.now() + 1_800_000,
      );
      socket.close(4_321);
      await eventually(
        () => seen['closed'] === 4_321 && under.operations.open.endpoints === 0,
        'both sides are closed',
      );
      server.close();
    });

    it('end with the key', async () => {
      const upstream = await under.serve(() => {});
      const server = new WebSocketServer({ server: upstream });
      const socket = open();
      await once(socket, 'open');
      const closed = once(socket, 'close');
      await under.tenant.delete(`/api-keys/${under.key.split('_')[1] ?? ''}`);
      await closed;
      await eventually(
        () => under.operations.open.endpoints === 0 && server.clients.size === 0,
        'the way is closed',
      );
      server.close();
    });

    it('end with the sandbox', async () => {
      const upstream = await under.serve(() => {});
      const server = new WebSocketServer({ server: upstream });
      const socket = open();
      await once(socket, 'open');
      const closed = once(socket, 'close');
      for (const client of server.clients) client.terminate();
      await closed;
      await eventually(() => under.operations.open.endpoints === 0, 'the way is closed');
      server.close();
    });

    it('are refused like any request: without a key, to others, to unknown targets', async () => {
      await under.serve((_request, response) => response.writeHead(426).end('no sockets here'));
      expect(await refusal(open('/', {}))).to.equal(401);
      expect(
        await refusal(open('/', { 'SERVICE-API-KEY': await under.operations.key('red', 'eve') })),
      ).to.equal(404);
      expect(await refusal(open())).to.equal(426);
      under.lead(1);
      expect(await refusal(open())).to.equal(502);
      await eventually(() => under.operations.open.endpoints === 0, 'the way is closed');
    });
  });
