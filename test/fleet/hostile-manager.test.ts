import { expect } from 'chai';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocketServer, type WebSocket } from 'ws';
import { silentLog } from '../../src/contracts/log.ts';
import { agreeEndless } from '../../src/fleet/link/endless-message.ts';
import { WorkerLinks } from '../../src/fleet/link/worker-links.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { credentialsIn, noCopies, noTemplateCopies } from './a-fleet.ts';

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

describe('a worker, before a manager that means ill, or hangs', () => {
  let manager: WebSocketServer;
  let links: WorkerLinks;
  let folder: string;
  let clock: TestClock;
  let told: string[];

  beforeEach(async () => {
    manager = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    await once(manager, 'listening');
    folder = mkdtempSync(join(tmpdir(), 'sandpool-worker-'));
    clock = new TestClock();
    told = [];
    links = linksTo(manager.address() as AddressInfo);
  });
  afterEach(async () => {
    links.stop();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    for (const socket of manager.clients) socket.terminate();
    await new Promise((resolve) => manager.close(resolve));
  });

  const linksTo = ({ port }: AddressInfo): WorkerLinks =>
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

  /** Resolves with the next connection of many messages: this manager knows no other one. */
  const linked = async (): Promise<WebSocket> => {
    for (;;) {
      const [socket, { headers }] = (await once(manager, 'connection')) as [
        WebSocket,
        IncomingMessage,
      ];
      if (headers['sandpool-link'] === undefined) return socket;
    }
  };
  const dialled = async (): Promise<WebSocket> => {
    links.start();
    return await linked();
  };

  it('goes on where streams were reset before it heard of them', async () => {
    const socket = await dialled();
    let heard = Buffer.alloc(0);
    socket.on('message', (bytes: Buffer) => (heard = Buffer.concat([heard, bytes])));
    const body = Buffer.from(
      '{"version":1,"managerKey":"k","nonce":"n","replica":"r","channel":""}',
    );
    socket.send(
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
    socket.send(frame(PING, 0, 0, Buffer.from('still-up')));
    await eventually(() => heard.includes('still-up'), 'it answers again');
    expect(told).to.deep.equal([]);
  });

  it('dials anew where the manager says nothing once it is connected', async () => {
    const socket = await dialled();
    await once(socket, 'message'); // it has begun
    clock.advance(15_000);
    expect(told).to.deep.equal(['the manager did not take it in, in time']);
    const again = linked();
    clock.advance(1_000);
    await again;
  });

  it('survives words that end the link while more words wait in the same read', async () => {
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
    const server = createServer();
    let dials = 0;
    server.on('upgrade', (request, socket: Duplex, first) => {
      dials += 1;
      socket.on('error', () => undefined); // the worker ends it
      void agreeEndless(request, socket, first).then(() => socket.write(flood()));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const flooded = linksTo(server.address() as AddressInfo);
    flooded.start();
    for (let ended = 1; ended <= 100; ended += 1) {
      await eventually(() => told.length >= ended || dials > ended, `it ends link ${ended}`);
      clock.advance(60_000);
    }
    flooded.stop();
    server.close();
  });
});
