import { expect } from 'chai';
import { once } from 'node:events';
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import {
  connect,
  createServer,
  type AddressInfo,
  type Server as TcpServer,
  type Socket,
} from 'node:net';
import type { Duplex } from 'node:stream';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { onACertificate } from '../support/harness/on-a-certificate.ts';
import { standsStill, turns } from '../support/harness/turns.ts';
import { FleetUnderTest, type TestWorker } from './a-fleet.ts';

const PIECE = Buffer.alloc(64 * 1024, 'x');
const TUNNELS = 16;
const FLOOD_BYTES = 16 << 20;

/** A connection whose network can stop, without a word. */
class Way {
  readonly #server: TcpServer;
  readonly sockets = new Set<Socket>();

  private constructor(server: TcpServer) {
    this.#server = server;
  }

  static async to(port: () => number): Promise<Way> {
    const server = createServer();
    const way = new Way(server);
    server.on('connection', (near) => {
      const far = connect(port(), '127.0.0.1');
      for (const socket of [near, far]) {
        way.sockets.add(socket);
        socket.on('error', () => undefined);
      }
      near.pipe(far).pipe(near);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return way;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  stopAll(): void {
    for (const socket of this.sockets) socket.unpipe().pause();
  }

  /** As the kernel does of a process that is killed: nobody is told but by a reset. */
  reset(): void {
    for (const socket of this.sockets) socket.resetAndDestroy();
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

/** Writes as much as it takes; returns how much that is by now. */
const flood = (connection: Duplex): (() => number) => {
  let bytes = 0;
  const go = (): void => {
    do bytes += PIECE.length;
    while (connection.write(PIECE));
  };
  connection.on('drain', go).on('error', () => undefined);
  go();
  return () => bytes;
};

for (const scheme of ['ws', 'wss'] as const)
  describe(`a flooded link by ${scheme}`, function () {
    const certificate = onACertificate({ isTrusted: true });
    let clock: TestClock;
    let fleet: FleetUnderTest;
    let server: HttpsServer;
    let way: Way;
    let worker: TestWorker;
    /** Takes a connection at the worker’s end. */
    let atWorker: (connection: Duplex) => void;

    beforeEach(async () => {
      clock = new TestClock();
      fleet = await FleetUnderTest.start({ clock });
      server = createHttpsServer(certificate());
      server.on('upgrade', (request, socket, head) => fleet.links.upgrade(request, socket, head));
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      way = await Way.to(() =>
        scheme === 'ws' ? fleet.port : (server.address() as AddressInfo).port,
      );
      const { token: joinToken } = await fleet.registry.invite('w1');
      worker = fleet.worker({
        ...{ clusterId: 'w1', joinToken, manager: `${scheme}://127.0.0.1:${way.port}` },
        serve: (connection) => atWorker(connection.on('error', () => undefined)),
      });
      await fleet.linked('w1');
    });
    afterEach(async () => {
      await fleet.stop();
      await way.close();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    });

    const dial = (): Duplex => {
      const route = fleet.links.find('w1');
      if (!route) throw new Error('it is not linked');
      return route.dial().on('error', () => undefined);
    };

    it('works while both ends send as much as they can', async () => {
      const came = { up: 0, down: 0 };
      atWorker = (connection) => {
        connection.on('data', (bytes: Buffer) => (came.up += bytes.length));
        flood(connection);
      };
      for (let at = 0; at < TUNNELS; at += 1) {
        const connection = dial();
        connection.on('data', (bytes: Buffer) => (came.down += bytes.length));
        flood(connection);
      }
      const isThrough = (): boolean => Math.min(came.up, came.down) > FLOOD_BYTES;
      await eventually(isThrough, 'both get what is sent');
    });

    for (const end of ['manager', 'worker'] as const) {
      /** Has one end send, and the other not read, until nothing more goes. */
      const stalled = async (): Promise<void> => {
        let sent = (): number => 0;
        const counts: (() => number)[] = [];
        atWorker = (connection) => {
          connection.resume();
          if (end === 'worker') counts.push(flood(connection));
        };
        for (let at = 0; at < TUNNELS; at += 1) {
          const connection = dial().resume();
          if (end === 'manager') counts.push(flood(connection));
        }
        sent = () => counts.reduce((sum, count) => sum + count(), 0);
        await eventually(() => sent() > FLOOD_BYTES, 'it flows');
        way.stopAll();
        await standsStill(sent, 'what is sent');
      };

      it(`from the ${end} ends within a second of the other end's death`, async () => {
        await stalled();
        way.reset();
        let seconds = 0;
        const areOver = (): boolean => {
          if (seconds < 3) clock.advance(1_000);
          seconds += 1;
          return worker.told.length > 0 && fleet.links.list()[0]?.isConnected === false;
        };
        await eventually(areOver, 'both know');
        expect(worker.told[0]).not.to.include('no message arrived');
      });

      it(`from the ${end} ends within 15 s of silence from the other end`, async () => {
        await stalled();
        let seconds = 0;
        const areOver = (): boolean => {
          if (worker.told.length > 0) worker.links.stop(); // it would dial anew
          return worker.told.length > 0 && !fleet.links.find('w1');
        };
        for (; seconds < 60 && !areOver(); seconds += 1) {
          if (seconds < 15)
            expect([worker.told, fleet.links.list()[0]?.isConnected]).to.deep.equal([[], true]);
          clock.advance(1_000);
          await turns();
        }
        // What the kernel passes on at first counts as heard, and it takes its own time for that.
        expect(seconds).to.be.within(15, 59);
        expect(worker.told).to.deep.equal(['no message arrived for 15 s']);
        for (const socket of way.sockets) socket.resume();
        const areClosed = (): boolean => [...way.sockets].every(({ closed }) => closed);
        await eventually(areClosed, 'the connections are, too');
      });
    }
  });
