import { expect } from 'chai';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../../src/contracts/log.ts';
import { newSecretHalf } from '../../src/fleet/link/identity.ts';
import { WorkerLinks } from '../../src/fleet/link/worker-links.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { credentialsIn, noCopies, noTemplateCopies } from './a-fleet.ts';
import { inManagersPlace, type TestManager } from './hostile-ends.ts';

/** One frame of HTTP/2 (RFC 9113, 4.1). */
const frame = (type: number, flags: number, id: number, payload: Buffer): Buffer => {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(id, 5);
  return Buffer.concat([head, payload]);
};
const DATA = 0;
const HEADERS = 1;
const RST_STREAM = 3;
const SETTINGS = 4;
const PING = 6;
const END_STREAM = 1;
const END_HEADERS = 4;

const PREFACE = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  frame(SETTINGS, 0, 0, Buffer.alloc(0)),
]);
/** `CONNECT w` and `POST http:/hello`, as literals and indices of HPACK. */
const CONNECT = Buffer.from('\x02\x07CONNECT\x01\x01w', 'latin1');
const HELLO = Buffer.concat([Buffer.from([0x83, 0x86, 0x04, 6]), Buffer.from('/hello')]);
/** With `:authority`, which a request needs to be heard. */
const COMPLETE_HELLO = Buffer.concat([HELLO, Buffer.from('\x01\x01w', 'latin1')]);
const cancelled = (id: number): Buffer => frame(RST_STREAM, 0, id, Buffer.from([0, 0, 0, 8]));

describe('a worker with a hostile or hanging manager', () => {
  let manager: TestManager;
  let links: WorkerLinks;
  let folder: string;
  let clock: TestClock;
  let told: string[];

  beforeEach(async () => {
    manager = await inManagersPlace();
    folder = mkdtempSync(join(tmpdir(), 'sandpool-worker-'));
    clock = new TestClock();
    told = [];
    links = linksTo(manager);
  });
  afterEach(async () => {
    links.stop();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    await manager.stop();
  });

  const linksTo = ({ port }: TestManager): WorkerLinks =>
    new WorkerLinks({
      clusterId: 'w1',
      replica: 'w1-0',
      managers: [`ws://127.0.0.1:${port}`],
      credentials: credentialsIn(folder),
      clock,
      log: { ...silentLog, warn: ({ why }) => void told.push(String(why)) },
      keys: noCopies,
      templates: noTemplateCopies,
      serve: () => undefined,
    });

  const dialled = async (): Promise<Socket> => {
    links.start();
    return await manager.linked();
  };

  it('continues if streams are reset before it reads them', async () => {
    const socket = await dialled();
    let heard = Buffer.alloc(0);
    socket.on('data', (bytes: Buffer) => (heard = Buffer.concat([heard, bytes])));
    const half = newSecretHalf().publicKey;
    const body = Buffer.from(
      `{"version":1,"managerKey":"k","nonce":"n","replica":"r","channel":"","half":"${half}"}`,
    );
    socket.write(
      Buffer.concat([
        PREFACE,
        frame(HEADERS, END_HEADERS, 1, CONNECT),
        cancelled(1),
        frame(HEADERS, END_HEADERS, 3, HELLO),
        frame(DATA, END_STREAM, 3, body),
        cancelled(3),
        frame(PING, 0, 0, Buffer.from('are-you?')),
      ]),
    );
    await eventually(() => heard.includes('are-you?'), 'it answers');
    socket.write(frame(PING, 0, 0, Buffer.from('still-up')));
    await eventually(() => heard.includes('still-up'), 'it answers again');
    expect(told).to.deep.equal([]);
  });

  it('reconnects if the manager stays silent after the connection', async () => {
    const socket = await dialled();
    await once(socket, 'readable'); // it has begun
    clock.advance(15_000);
    expect(told).to.deep.equal(['the manager did not accept it in time']);
    const again = manager.linked();
    clock.advance(1_000);
    await again;
  });

  it('survives a message that ends the link ahead of others in the same read', async () => {
    let size = 0;
    const some = (): Buffer => Buffer.alloc((size += 4_099) % 14_000, 'x');
    const flood = (): Buffer =>
      Buffer.concat([
        PREFACE,
        ...[1, 3, 5, 7, 9].map((id) => frame(HEADERS, END_HEADERS, id, COMPLETE_HELLO)),
        frame(DATA, END_STREAM, 1, Buffer.from('no JSON')),
        ...[3, 5, 7, 9].flatMap((id) => [
          frame(DATA, 0, id, some()),
          frame(DATA, END_STREAM, id, some()),
        ]),
      ]);
    let dials = 0;
    const server = await inManagersPlace((socket) => {
      dials += 1;
      socket.write(flood());
    });
    const flooded = linksTo(server);
    flooded.start();
    for (let ended = 1; ended <= 100; ended += 1) {
      await eventually(() => told.length >= ended || dials > ended, `it ends link ${ended}`);
      clock.advance(60_000);
    }
    flooded.stop();
    await server.stop();
  });
});
