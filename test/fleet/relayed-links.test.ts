import { expect } from 'chai';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server } from 'node:https';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { eventually } from '../support/harness/eventually.ts';
import { FaultProxy } from '../support/harness/fault-proxy.ts';
import { onACertificate } from '../support/harness/on-a-certificate.ts';
import { FleetUnderTest } from './a-fleet.ts';

const serve = (): void => undefined;

describe('a relayed link', function () {
  const certificate = onACertificate({ isTrusted: true });
  let fleet: FleetUnderTest;
  let server: Server;
  let between: FaultProxy;

  const portOf = (): number => (server.address() as AddressInfo).port;

  beforeEach(async () => {
    fleet = await FleetUnderTest.start({ addresses: [] });
    const { key, cert } = certificate();
    server = createServer({ key, cert });
    server.on('upgrade', (request, socket, head) => fleet.links.upgrade(request, socket, head));
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    between = new FaultProxy({ host: '127.0.0.1', port: portOf() }, { key, cert, ca: cert });
  });
  afterEach(async () => {
    await fleet.stop();
    await between.stop();
    server.closeAllConnections();
    await new Promise((resolve) => void server.close(resolve));
  });

  it('is refused by the worker, which then connects directly', async () => {
    const { token } = await fleet.registry.invite('w1');
    const passedOn = fleet.worker({
      ...{ clusterId: 'w1', serve, joinToken: token },
      manager: `wss://127.0.0.1:${await between.start()}`,
    });
    await eventually(() => passedOn.told.length > 0, 'it is refused');
    expect(passedOn.told[0]).to.include('relayed by another party');
    expect(fleet.links.find('w1')).to.equal(undefined);
    fleet.worker({
      ...{ clusterId: 'w1', serve, joinToken: token },
      manager: `wss://127.0.0.1:${portOf()}`,
    });
    await fleet.linked('w1');
  });
});

describe('a manager with configured addresses', () => {
  it('refuses a worker that dialled another address', async () => {
    const fleet = await FleetUnderTest.start({ addresses: ['wss://hub.example.com:443'] });
    try {
      const { token } = await fleet.registry.invite('w1');
      const worker = fleet.worker({ clusterId: 'w1', serve, joinToken: token });
      await eventually(() => worker.told.length > 0, 'it is refused');
      expect(worker.told[0]).to.include('not in fleet.addresses');
      const counted = (): number => fleet.links.refused.counts.get('address') ?? 0;
      await eventually(() => counted() > 0, 'it is counted');
      expect(fleet.registry.find('w1')).to.have.property('joinHash'); // the token is good yet
    } finally {
      await fleet.stop();
    }
  });
});

describe('a connection refused as a link', () => {
  it('is closed by the manager, even if the other end keeps its half open', async () => {
    const fleet = await FleetUnderTest.start();
    const server = createHttpServer();
    server.on('upgrade', (request, socket, head) => fleet.links.upgrade(request, socket, head));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const taken = once(server, 'connection');
    const { port } = server.address() as AddressInfo;
    const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    try {
      client.on('error', () => undefined).resume();
      client.write(
        'GET /x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      );
      const [socket] = (await taken) as [Socket];
      await eventually(() => socket.closed, 'the manager closes it');
    } finally {
      client.destroy();
      server.close();
      await fleet.stop();
    }
  });
});
