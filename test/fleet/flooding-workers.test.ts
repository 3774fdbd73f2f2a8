import { expect } from 'chai';
import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net';
import { TestClock } from '../support/fakes/test-clock.ts';
import { garbageCollector } from '../support/harness/collect-garbage.ts';
import { eventually } from '../support/harness/eventually.ts';
import { FleetUnderTest } from './a-fleet.ts';

const MOST_BYTES = 64 << 20;
/** How much more than before this process may hold while it is flooded: 32 MiB are a link's. */
const MOST_HELD = 48 << 20;
const LOOK_EVERY_BYTES = 8 << 20;
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

const many = (one: Buffer): Buffer => Buffer.concat(Array<Buffer>(500).fill(one));

/** Stands between a worker and the manager, and says in the worker's name whatever it likes. */
class Flooder {
  readonly #server: Server;
  readonly #sockets: Socket[] = [];

  constructor(managerPort: number) {
    this.#server = createServer((worker) => {
      const manager = connect(managerPort, '127.0.0.1');
      worker.pipe(manager).pipe(worker);
      for (const each of [worker, manager]) each.on('error', () => each.destroy());
      manager.once('close', () => worker.destroy());
      worker.once('close', () => manager.destroy());
      this.#sockets.push(manager);
    });
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => void this.#server.listen(0, '127.0.0.1', resolve));
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /**
   * Sends one, and another again and again until the link is cut, `MOST_BYTES` at most; looks on
   * the way.
   */
  async flood(first: Buffer, bytes: Buffer, look: () => void): Promise<void> {
    const manager = this.#sockets.at(-1);
    manager?.unpipe();
    manager?.pause();
    manager?.write(first);
    for (let sent = 0; sent < MOST_BYTES && manager?.writable; sent += bytes.length) {
      if (sent % LOOK_EVERY_BYTES < bytes.length) look();
      if (!manager.write(bytes)) await new Promise((resolve) => void setImmediate(resolve));
    }
  }

  stop(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

const FLOODS = {
  'PINGs that it does not read the answers of': [frame(PING, 0, 0, Buffer.alloc(8))],
  'SETTINGS that it does not read the answers of': [frame(SETTINGS, 0, 0)],
  'ends of streams that there are not': [frame(RST_STREAM, 0, 99, Buffer.alloc(4))],
  'a head that does not end': [
    frame(CONTINUATION, 0, 99, Buffer.alloc(64)),
    frame(HEADERS, 0, 99, Buffer.alloc(1)),
  ],
} satisfies Readonly<Record<string, readonly [Buffer, Buffer?]>>;
const NONE = Buffer.alloc(0);
const collect = garbageCollector();

/** What cannot be collected: how much of the rest is there says how busy the machine is. */
const held = (): number => {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

describe('a worker that floods its link', function () {
  let fleet: FleetUnderTest;
  let flooder: Flooder;

  beforeEach(async () => {
    fleet = await FleetUnderTest.start({ clock: new TestClock() });
    flooder = new Flooder(fleet.port);
    await fleet.join({ clusterId: 'w2', serve });
    await fleet.join({ clusterId: 'w1', serve, manager: await flooder.start() });
  });
  afterEach(async () => {
    await fleet.stop();
    flooder.stop();
  });

  for (const [what, [again, first = NONE]] of Object.entries(FLOODS))
    it(`is disconnected, without an effect on memory and other links: ${what}`, async () => {
      const atFirst = held();
      let most = 0;
      const look = (): void => void (most = Math.max(most, held() - atFirst));
      const { linkId } = fleet.links.find('w2') ?? {};
      const before = fleet.links.find('w1')?.linkId;
      await flooder.flood(first, many(again), look);
      look();
      expect(fleet.links.find('w2')?.linkId).to.equal(linkId);
      expect(most).to.be.lessThan(MOST_HELD);
      await eventually(() => fleet.links.find('w1')?.linkId !== before, 'it is cut');
    });
});
