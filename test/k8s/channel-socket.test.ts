import { KubeConfig } from '@kubernetes/client-node';
import { expect } from 'chai';
import { once } from 'node:events';
import { createServer as createPlainServer } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { mock } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { WebSocketServer } from 'ws';
import { ChannelSocket } from '../../src/k8s/streams/channel-socket.ts';
import type { ClusterAccess } from '../../src/k8s/api/cluster-access.ts';
import { freePorts } from '../../local-cluster/control-plane/free-ports.ts';
import { onACertificate } from '../support/harness/on-a-certificate.ts';
import { plainAccess } from './a-fake-api-server.ts';

const PROTOCOL = 'v5.channel.k8s.io';
const PING_EVERY_MS = 10_000;

describe('a link to the API server', () => {
  const certificate = onACertificate();
  let server: Server;
  let port: number;
  /** Of each link that was opened, whether it resumed a session. */
  let resumed: boolean[];

  const serve = async (): Promise<void> => {
    server = createServer(certificate());
    server.on('secureConnection', (socket: TLSSocket) => {
      resumed.push(socket.isSessionReused());
    });
    new WebSocketServer({ server, handleProtocols: () => PROTOCOL });
    await once(server.listen(port, '127.0.0.1'), 'listening');
  };
  beforeEach(async () => {
    resumed = [];
    [port = 0] = await freePorts(1);
    await serve();
  });
  afterEach(() => {
    server.close();
  });

  const anAccess = (): ClusterAccess => ({
    server: new URL(`https://127.0.0.1:${port}`),
    tls: { ca: certificate().cert, rejectUnauthorized: true },
    authorization: () => undefined,
    rejected: () => undefined,
    kubeConfig: new KubeConfig(),
  });
  const opened = async (access: ClusterAccess): Promise<void> => {
    const link = await ChannelSocket.open({
      access,
      path: '/exec',
      subprotocol: PROTOCOL,
      agent: 'test',
    });
    link.listen({ data: () => undefined, closed: () => undefined });
    await link.roundTrip(); // the session's ticket came before the answer
    link.close();
    await link.closed;
  };

  it('resumes the TLS session of the last link with the same credentials only', async () => {
    const access = anAccess();
    await opened(access);
    await opened(access);
    await opened(access);
    await opened(anAccess());
    expect(resumed).to.deep.equal([false, true, true, false]);
  });

  it('makes a full handshake if the API server has restarted and lost its sessions', async () => {
    const access = anAccess();
    await opened(access);
    const ended = once(server, 'close');
    server.close();
    await ended;
    await serve();
    await opened(access);
    await opened(access);
    expect(resumed).to.deep.equal([false, false, true]);
  });

  describe('with pings', () => {
    let other: WebSocketServer;
    let link: ChannelSocket;
    let ended: string | undefined;

    beforeEach(async () => {
      mock.timers.enable({ apis: ['setInterval'] });
      ended = undefined;
      const plain = createPlainServer();
      other = new WebSocketServer({ server: plain, handleProtocols: () => PROTOCOL });
      await once(plain.listen(0, '127.0.0.1'), 'listening');
      const { port: at } = plain.address() as AddressInfo;
      link = await ChannelSocket.open({
        ...{ access: plainAccess(at), path: '/exec', subprotocol: PROTOCOL, agent: 'test' },
        pingEveryMs: PING_EVERY_MS,
      });
      link.listen({ data: () => undefined, closed: (why) => (ended = why) });
      other.once('close', () => plain.close());
    });
    afterEach(async () => {
      mock.timers.reset();
      for (const socket of other.clients) socket.terminate();
      await new Promise<void>((resolve) => other.close(() => resolve()));
    });

    it('survives a pause of the process longer than a period', async () => {
      mock.timers.tick(PING_EVERY_MS);
      mock.timers.tick(PING_EVERY_MS); // late: the answer to the ping is not read yet
      await link.roundTrip();
      for (let periods = 0; periods < 10; periods += 1) {
        mock.timers.tick(PING_EVERY_MS);
        await link.roundTrip();
      }
      expect(ended).to.equal(undefined);
    });

    it('is closed once a ping is unanswered for two periods', async () => {
      for (const socket of other.clients) socket.pause();
      mock.timers.tick(3 * PING_EVERY_MS);
      await link.closed;
      expect(ended).to.equal('the link is dead: a ping was not answered');
    });
  });
});
