import { KubeConfig } from '@kubernetes/client-node';
import { expect } from 'chai';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { createRequire } from 'node:module';
import type { TLSSocket } from 'node:tls';
import { Worker } from 'node:worker_threads';
import { WebSocketServer } from 'ws';
import { ChannelSocket } from '../../src/k8s/streams/channel-socket.ts';
import type { ClusterAccess } from '../../src/k8s/api/cluster-access.ts';
import { freePorts } from '../../local-cluster/control-plane/free-ports.ts';
import { aCertificate, type Certificate } from '../../local-cluster/a-certificate.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { plainAccess } from './a-fake-api-server.ts';

const PROTOCOL = 'v5.channel.k8s.io';
const PING_EVERY_MS = 200;

/** The other end: it answers a ping a moment later, whatever this thread does, and tells of both. */
const OTHER_END = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { WebSocketServer } = require(workerData.ws);
  const noted = (what) => {
    Atomics.add(workerData.pings, what, 1);
    Atomics.notify(workerData.pings, what);
  };
  const server = new WebSocketServer({
    ...{ host: '127.0.0.1', port: 0, autoPong: false, handleProtocols: () => '${PROTOCOL}' },
  });
  server.on('listening', () => parentPort.postMessage(server.address().port));
  server.on('connection', (socket) => socket.on('ping', (data) => {
    noted(0);
    setTimeout(() => socket.pong(data, false, () => noted(1)), 100);
  }));
`;

describe('a link to the API server', () => {
  let certificate: Certificate;
  let server: Server;
  let port: number;
  /** Of each link that was opened, whether it resumed a session. */
  let resumed: boolean[];

  before(function () {
    const made = aCertificate();
    if (!made) return skipBecause(this, 'there is no openssl to make a certificate with');
    certificate = made;
  });
  after(() => {
    if (certificate) rmSync(certificate.folder, { recursive: true });
  });

  const serve = async (): Promise<void> => {
    server = createServer({ cert: certificate.cert, key: certificate.key });
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
    tls: { ca: certificate.cert, rejectUnauthorized: true },
    authorization: () => undefined,
    rejected: () => undefined,
    kubeConfig: new KubeConfig(),
  });
  const opened = async (access: ClusterAccess): Promise<void> => {
    const link = await ChannelSocket.open({
      access,
      path: '/exec',
      subprotocols: [PROTOCOL],
      agent: 'test',
    });
    link.listen({ data: () => undefined, closed: () => undefined });
    await link.roundTrip(); // the session's ticket came before the answer
    link.close();
    await link.closed;
  };

  it('resumes the TLS session of the one before, of the same access alone', async () => {
    const access = anAccess();
    await opened(access);
    await opened(access);
    await opened(access);
    await opened(anAccess());
    expect(resumed).to.deep.equal([false, true, true, false]);
  });

  it('opens in full where the API server was started anew and knows no session', async () => {
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

  it('is not taken for dead by a process that stood still while the answer to its ping came', async () => {
    const pings = new Int32Array(new SharedArrayBuffer(8));
    const ws = createRequire(import.meta.url).resolve('ws');
    const other = new Worker(OTHER_END, { eval: true, workerData: { pings, ws } });
    try {
      const [at] = (await once(other, 'message')) as [number];
      const link = await ChannelSocket.open({
        ...{ access: plainAccess(at), path: '/exec', subprotocols: [PROTOCOL], agent: 'test' },
        pingEveryMs: PING_EVERY_MS,
      });
      let ended: string | undefined;
      link.listen({ data: () => undefined, closed: (why) => (ended = why) });
      await eventually(() => Atomics.load(pings, 0) > 0, 'a ping came');
      await new Promise(setImmediate); // from there timers come before what is to be read
      Atomics.wait(pings, 1, 0, NEVER_COMES_MS); // until it is answered, and the next one is due
      Atomics.wait(pings, 1, Atomics.load(pings, 1), PING_EVERY_MS);
      await link.roundTrip();
      expect(ended).to.equal(undefined);
      link.close();
      await link.closed;
    } finally {
      await other.terminate();
    }
  });
});
