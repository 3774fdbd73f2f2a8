import { expect } from 'chai';
import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { FleetUnderTest } from './a-fleet.ts';

const PATIENCE_MS = 30_000;
const MOST_BYTES = 64 << 20;
const serve = (): void => undefined;

/** A frame of HTTP/2 (RFC 9113 section 4.1). */
const frame = (type: number, flags: number, stream: number, payload = Buffer.alloc(0)): Buffer => {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
};
const [HEADERS, RST_STREAM, SETTINGS, PING, CONTINUATION] = [1, 3, 4, 6, 9];

/** A frame of a WebSocket from a client (RFC 6455 section 5.2), masked with zeros. */
const message = (opcode: number, payload: Buffer): Buffer => {
  const length = payload.length < 126 ? Buffer.from([payload.length | 0x80]) : Buffer.alloc(3);
  if (payload.length >= 126) {
    length.writeUInt8(126 | 0x80, 0);
    length.writeUInt16BE(payload.length, 1);
  }
  return Buffer.concat([Buffer.from([0x80 | opcode]), length, Buffer.alloc(4), payload]);
};
const many = (one: Buffer): Buffer => Buffer.concat(Array<Buffer>(500).fill(one));
const inMessages = (one: Buffer): Buffer => message(2, many(one));

/** Stands between a worker and the manager, and says in the worker's name whatever it likes. */
class Flooder {
  readonly #server: Server;
  readonly #sockets: Socket[] = [];
  isCut = false;

  constructor(managerPort: number) {
    this.#server = createServer((worker) => {
      const manager = connect(managerPort, '127.0.0.1');
      worker.pipe(manager).pipe(worker);
      for (const each of [worker, manager]) each.on('error', () => each.destroy());
      manager.once('close', () => {
        if (this.#sockets.includes(manager)) this.isCut = true;
        worker.destroy();
      });
      worker.once('close', () => manager.destroy());
      this.#sockets.push(manager);
    });
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => void this.#server.listen(0, '127.0.0.1', resolve));
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Sends it again and again until the link is cut, `MOST_BYTES` at most; reads nothing. */
  async flood(bytes: Buffer): Promise<void> {
    const manager = this.#sockets.at(-1);
    manager?.unpipe();
    manager?.pause();
    for (let sent = 0; sent < MOST_BYTES && manager?.writable; sent += bytes.length)
      if (!manager.write(bytes)) await new Promise((resolve) => void setImmediate(resolve));
  }

  stop(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

describe('a worker that floods its link with frames', () => {
  let fleet: FleetUnderTest;
  let flooder: Flooder;
  let clock: TestClock;

  beforeEach(async () => {
    clock = new TestClock();
    fleet = await FleetUnderTest.start({ clock });
    flooder = new Flooder(fleet.port);
    await fleet.join({ clusterId: 'w2', serve });
    await fleet.join({ clusterId: 'w1', serve, manager: await flooder.start() });
  });
  afterEach(async () => {
    await fleet.stop();
    flooder.stop();
  });

  const FLOODS = {
    'PINGs that it does not read the answers of': inMessages(frame(PING, 0, 0, Buffer.alloc(8))),
    'SETTINGS that it does not read the answers of': inMessages(frame(SETTINGS, 0, 0)),
    'pings of the WebSocket': many(message(9, Buffer.alloc(125))),
    'ends of streams that there are not': inMessages(frame(RST_STREAM, 0, 99, Buffer.alloc(4))),
    'a head that does not end': Buffer.concat([
      message(2, frame(HEADERS, 0, 99, Buffer.alloc(1))),
      inMessages(frame(CONTINUATION, 0, 99, Buffer.alloc(64))),
    ]),
  };
  for (const [what, bytes] of Object.entries(FLOODS))
    it(`has that link alone cut, and takes no memory: ${what}`, async () => {
      const { rss } = process.memoryUsage();
      const { linkId } = fleet.links.find('w2') ?? {};
      const before = fleet.links.find('w1')?.linkId;
      await flooder.flood(bytes);
      expect(fleet.links.find('w2')?.linkId).to.equal(linkId);
      expect(process.memoryUsage().rss - rss).to.be.lessThan(256 << 20);

      // what is not read any more is as dead as what is not sent
      await eventually(
        () => {
          clock.advance(15_000);
          return fleet.links.find('w1')?.linkId !== before;
        },
        'it is cut',
        PATIENCE_MS,
      );
    });
});
