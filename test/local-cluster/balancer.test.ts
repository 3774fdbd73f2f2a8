import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import { connect } from 'node:net';
import { Balancer } from '../../local-cluster/balancer.ts';
import { freePorts } from '../../local-cluster/control-plane/free-ports.ts';
import { eventually } from '../support/harness/eventually.ts';

interface Daemon {
  readonly port: number;
  isReady: boolean;
  stop(): Promise<void>;
}

describe('the balancer before replicas', () => {
  let daemons: readonly Daemon[];
  let balancer: Balancer;

  beforeEach(async () => {
    daemons = [await aDaemon('one'), await aDaemon('two')];
    balancer = new Balancer(daemons.map(({ port }) => port));
    await balancer.start();
  });
  afterEach(async () => {
    await balancer.stop();
    for (const daemon of daemons) await daemon.stop();
  });

  /** Of so many connections that are open at one time, who answered each. */
  const answers = async (count: number): Promise<readonly string[]> => {
    const sockets = Array.from({ length: count }, () => connect(balancer.port, '127.0.0.1'));
    const names: string[] = [];
    for (const socket of sockets) {
      socket.write('GET /name HTTP/1.1\r\nHost: x\r\n\r\n');
      const [chunk]: Buffer[] = await once(socket, 'data');
      names.push(/one|two/.exec(String(chunk))?.[0] ?? String(chunk));
    }
    for (const socket of sockets) {
      const closed = once(socket, 'close');
      socket.destroy();
      await closed;
    }
    return names.toSorted();
  };

  it('shares connections out', async () => {
    expect(await answers(4)).to.deep.equal(['one', 'one', 'two', 'two']);
  });

  it('sends nobody to a replica that is not ready, and again once it is', async () => {
    const [one, two] = daemons;
    if (!one || !two) throw new Error('there are two');
    one.isReady = false;
    await eventually(() => balancer.ready.length === 1, 'it was seen');
    expect(await answers(3)).to.deep.equal(['two', 'two', 'two']);

    one.isReady = true;
    await eventually(() => balancer.ready.length === 2, 'it was seen');
    expect(await answers(2)).to.deep.equal(['one', 'two']);
  });

  it('sends nobody to a replica that is gone, and refuses where none is left', async () => {
    await daemons[0]?.stop();
    await eventually(() => balancer.ready.length === 1, 'it was seen');
    expect(await answers(2)).to.deep.equal(['two', 'two']);

    await daemons[1]?.stop();
    await eventually(() => balancer.ready.length === 0, 'it was seen');
    const socket = connect(balancer.port, '127.0.0.1');
    const [error]: Error[] = await once(socket, 'error');
    expect(error?.message).to.include('ECONNRESET');
  });

  it('carries large bodies whole, and an end', async () => {
    const body = Buffer.alloc(5_000_000, 'x');
    const asked = request({
      port: balancer.port,
      host: '127.0.0.1',
      method: 'POST',
      path: '/echo',
      agent: false,
    });
    asked.end(body);
    const [response] = (await once(asked, 'response')) as [AsyncIterable<Buffer>];
    let size = 0;
    for await (const chunk of response) size += chunk.length;

    expect(size).to.equal(body.length);
  });
});

const aDaemon = async (name: string): Promise<Daemon> => {
  const daemon = { isReady: true };
  const [port = 0] = await freePorts(1); // nobody else answers there once it is gone
  const server: Server = createServer((asked, answer) => {
    if (asked.url === '/readyz') answer.writeHead(daemon.isReady ? 200 : 503).end();
    else if (asked.url === '/echo') asked.pipe(answer);
    else answer.end(name);
  }).listen(port, '127.0.0.1');
  await once(server, 'listening');
  return Object.assign(daemon, {
    port,
    stop: async () => {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  });
};
