import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { expect } from 'chai';
import { AgentCall } from '../../../src/contracts/agent/agent-call.ts';
import { NotJoinable, OutcomeUnknown } from '../../../src/contracts/sandbox-driver.ts';
import { EmbeddedFiles } from '../../../src/embedded/driver/embedded-files.ts';
import { TestClock } from '../../support/fakes/test-clock.ts';
import { rejection } from '../../support/harness/rejection.ts';

const never = new AbortController().signal;
const place = { id: 'a', path: Buffer.from('/') };

/** A frame of an agent, see native/README.md. */
const frame = (type: string, payload: Buffer): Buffer => {
  const head = Buffer.alloc(5);
  head.write(type, 'latin1');
  head.writeUInt32BE(payload.length, 1);
  return Buffer.concat([head, payload]);
};
const TAKEN = Buffer.from([0]);
const aStat = Buffer.concat([Buffer.from('d'), Buffer.alloc(28 + 4)]);

describe('files with a broken agent', () => {
  let folder: string;
  let servers: Server[];
  let clock: TestClock;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-test-'));
    servers = [];
    clock = new TestClock();
  });
  afterEach(() => {
    for (const server of servers) server.close();
    rmSync(folder, { recursive: true });
  });

  /** Agents that do that with their connections, in turn. */
  const agents = (...acts: readonly ((socket: Socket) => void)[]) => {
    const asked: (string | undefined)[] = [];
    const spawner = {
      socketTo: async ({ stale }: { readonly stale?: string }): Promise<string> => {
        asked.push(stale);
        const path = join(folder, String(asked.length));
        const act = acts[asked.length - 1];
        const server = createServer((socket) => {
          socket.on('error', () => {});
          act?.(socket);
        });
        servers.push(server);
        await new Promise<void>((resolve) => server.listen(path, resolve));
        return path;
      },
    };
    return { files: new EmbeddedFiles(clock, spawner), asked };
  };

  it('use a new agent after one that accepted a connection and stayed silent', async () => {
    let connected: () => void = () => {};
    const waits = new Promise<void>((resolve) => {
      connected = resolve;
    });
    const { files, asked } = agents(
      () => connected(),
      (socket) => socket.write(Buffer.concat([TAKEN, frame('E', aStat)])),
    );
    const silent = rejection(files.stat(place, never));
    await waits;
    clock.advance(60_000);

    expect(await silent).to.be.instanceOf(NotJoinable);
    expect((await files.stat(place, never)).kind).to.equal('folder');
    expect(asked).to.deep.equal([undefined, join(folder, '1')]);
  });

  it('fail if the head of an answer is malformed', async () => {
    const { files } = agents((socket) =>
      socket.write(Buffer.concat([TAKEN, frame('H', Buffer.from('f'))])),
    );

    expect(await rejection(files.open(place, {}, never))).to.be.instanceOf(OutcomeUnknown);
  });

  const u64 = (value: bigint): Buffer => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64BE(value);
    return bytes;
  };
  const aFile = (size: bigint): Buffer =>
    Buffer.concat([Buffer.from('f'), Buffer.alloc(12), u64(size), Buffer.alloc(8 + 4)]);
  const NO_CONTENT: readonly (readonly [string, string, bigint, bigint, bigint])[] = [
    ['that ends before it begins', 'H', 9n, 9n, 3n],
    ['that ends behind the file', 'H', 4n, 0n, 9n],
    ['of a length that is no number of bytes', 'H', 1n << 63n, 0n, 1n << 63n],
    ['that is over before anything came of it', 'E', 4n, 0n, 4n],
  ];
  for (const [what, type, size, start, end] of NO_CONTENT)
    it(`refuse content ${what}`, async () => {
      const head = Buffer.concat([aFile(size), u64(start), u64(end)]);
      const { files } = agents((socket) => socket.write(Buffer.concat([TAKEN, frame(type, head)])));

      expect(await rejection(files.open(place, {}, never))).to.be.instanceOf(OutcomeUnknown);
    });

  it('refuse a page with more entries than requested', async () => {
    const entries = Buffer.concat(Array.from({ length: 11 }, () => aFile(0n)));
    const { files } = agents((socket) =>
      socket.write(
        Buffer.concat([
          TAKEN,
          frame('H', Buffer.alloc(0)),
          frame('D', entries),
          frame('E', Buffer.alloc(0)),
        ]),
      ),
    );
    const listed = files.list(place, { depth: 1, limit: 10 }, never);

    expect(await rejection(listed)).to.be.instanceOf(OutcomeUnknown);
  });

  it('combine single bytes that wait for their reader', async () => {
    const connection = new Duplex({ read: () => {}, write: (_bytes, _encoding, done) => done() });
    const call = new AgentCall({ connection, tokens: ['pack'], clock, signal: never });
    const bytes = Array.from({ length: 10_000 }, () => frame('D', Buffer.alloc(1)));
    const head = Buffer.concat([TAKEN, frame('H', Buffer.alloc(0))]);
    connection.push(Buffer.concat([head, ...bytes, frame('E', Buffer.alloc(0))]));
    await call.answer();
    const pieces: number[] = [];
    call.content.on('data', (piece: Buffer) => pieces.push(piece.length));
    await once(call.content, 'end');

    expect(pieces.reduce((sum, length) => sum + length, 0)).to.equal(10_000);
    expect(pieces.length).to.be.below(100);
  });

  it('refuse an endless page of a list', async () => {
    const endless = frame('D', Buffer.alloc(1 << 20));
    const { files } = agents((socket) => {
      const more = (): void => {
        while (!socket.destroyed && socket.write(endless)) continue;
      };
      socket.on('drain', more);
      socket.write(Buffer.concat([TAKEN, frame('H', Buffer.alloc(0))]));
      more();
    });
    const listed = files.list(place, { depth: 1, limit: 10 }, never);

    expect(await rejection(listed)).to.be.instanceOf(OutcomeUnknown);
  });
});
