import { expect } from 'chai';
import { once } from 'node:events';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { PortUnreachable } from '../../src/contracts/sandbox-driver.ts';
import { openWay } from '../../src/embedded/spawner/ports/port-dialling.ts';
import { aForwarder } from '../support/fakes/a-forwarder.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aGateway, ask, EndlessAnswer, textOf, type GatewayUnderTest } from './gateway-support.ts';

const LONG = Buffer.from(Uint32Array.from({ length: 1 << 20 }, (_, at) => at).buffer);

describe('long answers of an endpoint through a forwarder', () => {
  let under: GatewayUnderTest;
  let forwarder: Awaited<ReturnType<typeof aForwarder>>;

  beforeEach(async () => {
    forwarder = await aForwarder();
    under = await aGateway({
      dial: async (port, signal) => {
        const socket = await openWay(forwarder.socket, signal, (why) => new PortUnreachable(why));
        if (!socket) throw new Error('no forwarder listens');
        socket.choose(port, signal);
        return socket;
      },
    });
  });

  afterEach(async () => {
    await under.stop(0);
    await forwarder.stop();
  });

  it('arrive unchanged, many at once, and with later answers on the same connection', async () => {
    await under.serve((request, response) => {
      const body = request.url === '/long' ? LONG : Buffer.from(`short ${request.url}`);
      response.writeHead(200, { 'Content-Length': body.length }).end(body);
    });
    const agent = new Agent({ keepAlive: true, maxSockets: 4 });
    const get = async (path: string, method = 'GET'): Promise<Buffer> => {
      const request = httpRequest({
        host: '127.0.0.1',
        port: under.port,
        method,
        agent,
        path: `/sandboxes/${under.id}/endpoints/web${path}`,
        headers: { 'SERVICE-API-KEY': under.key },
      }).end();
      const [response] = (await once(request, 'response')) as IncomingMessage[];
      const chunks: Buffer[] = [];
      for await (const chunk of response ?? []) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks);
    };
    const found = await Promise.all(
      Array.from({ length: 24 }, async (_, at) => {
        if (at % 3 === 0) return (await get('/long')).equals(LONG);
        if (at % 3 === 1) return (await get('/long', 'HEAD')).length === 0;
        return String(await get(`/${at}`)) === `short /${at}`;
      }),
    );
    agent.destroy();
    expect(found).to.not.include(false);
  });

  it("that are shorter than announced break the client's answer", async () => {
    await under.serveBytes(
      (socket) =>
        void socket.once('data', () => {
          socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${LONG.length}\r\n\r\n`);
          socket.end(LONG.subarray(0, LONG.length - 1));
        }),
    );
    const failure = await ask(under, '/')
      .then(textOf)
      .then(
        () => undefined,
        (error: unknown) => error,
      );
    expect(failure).to.have.property('code', 'ECONNRESET');
    await eventually(() => under.operations.open.endpoints === 0, 'the way is closed');
  });

  it('that are longer than announced end at the announced length', async () => {
    await under.serveBytes(
      (socket) =>
        void socket.once('data', () => {
          socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${LONG.length}\r\n\r\n`);
          socket.end(
            Buffer.concat([
              LONG,
              Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged'),
            ]),
          );
        }),
    );
    const client = connect(under.port, '127.0.0.1');
    client.write(
      `GET /sandboxes/${under.id}/endpoints/web/ HTTP/1.1\r\nHost: x\r\nSERVICE-API-KEY: ${under.key}\r\nConnection: close\r\n\r\n`,
    );
    const chunks: Buffer[] = [];
    for await (const chunk of client) chunks.push(chunk as Buffer);
    const answer = Buffer.concat(chunks);
    expect(answer.subarray(answer.indexOf('\r\n\r\n') + 4).equals(LONG)).to.equal(true);
  });

  it('wait for their clients, and end in the sandbox when their clients disconnect', async () => {
    const answer = new EndlessAnswer();
    await under.serve((_request, response) => {
      answer.give(response.writeHead(200, { 'Content-Length': 1 << 30 }));
    });
    const response = await ask(under, '/endless');
    await answer.untilItWaits();
    expect(answer.written).to.be.below(64 << 20);
    response.destroy();
    await eventually(
      () => answer.isClosed && under.operations.open.endpoints === 0,
      'the way is closed',
    );
  });

  it('become 502 if nothing listens', async () => {
    const server = await under.serve(() => {});
    server.close();
    await once(server, 'close');
    expect((await under.tenant.get(`/sandboxes/${under.id}/endpoints/web/`)).status).to.equal(502);
  });
});
