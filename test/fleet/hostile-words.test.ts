import { expect } from 'chai';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import {
  connect,
  performServerHandshake,
  type ClientHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { silentLog } from '../../src/contracts/log.ts';
import { newFleetKey, newJoinToken } from '../../src/fleet/link/fleet-keys.ts';
import { readWords } from '../../src/fleet/link/link-calls.ts';
import { newSecretHalf } from '../../src/fleet/link/identity.ts';
import { ManagerHello, transcriptOf, WorkerHello } from '../../src/fleet/link/link-words.ts';
import { MOST_TOLD } from '../../src/fleet/link/told/told-records.ts';
import { WorkerLinks } from '../../src/fleet/link/worker-links.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { credentialsIn, FleetUnderTest, noCopies, noTemplateCopies } from './a-fleet.ts';
import { dialled, inManagersPlace, type TestManager } from './hostile-ends.ts';

const MOST_SENT = 10 << 20;
const CHUNK = Buffer.alloc(16_384, 'a');
/** More than an end takes of one stream, with what kernels and sockets hold on the way. */
const MOST_TAKEN = 8 << 20;

/** Sends 10 MB and no end, as fast as it is taken; resolves with how much of that was. */
const flood = async (stream: Writable): Promise<number> => {
  let sent = 0;
  const closed = once(stream, 'close').catch(() => undefined);
  stream.write('"');
  while (sent < MOST_SENT && !stream.destroyed && stream.writable) {
    sent += CHUNK.length;
    if (!stream.write(CHUNK))
      await Promise.race([closed, once(stream, 'drain').catch(() => undefined)]);
  }
  return sent;
};

/** What is no word of a link, by what is wrong with it. */
const WRONG = {
  'no JSON': '{"number":',
  'a list': '[]',
  nothing: 'null',
  'other types': JSON.stringify({
    ...{ version: '1', clusterID: 7, signature: [], number: '1', replicas: 'x', error: 3 },
    ...{ managerKey: 1, linkId: {}, globalId: 9, text: 3, state: 4, half: false },
  }),
  'a deep one': `${'['.repeat(3_000)}${']'.repeat(3_000)}`,
} as const;

describe('a manager whose worker sends invalid answers on the link', () => {
  let fleet: FleetUnderTest;
  let sockets: Socket[];
  /** Stands still: what is cut here is cut for what was said. */
  let clock: TestClock;
  /** Of the manager. */
  let warned: string[];

  beforeEach(async () => {
    [sockets, warned, clock] = [[], [], new TestClock()];
    const log = { ...silentLog, warn: (_fields: object, event: string) => void warned.push(event) };
    fleet = await FleetUnderTest.start({ log, clock });
    await fleet.join({ clusterId: 'w2', serve: (connection) => void connection.destroy() });
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    await fleet.stop();
  });

  const own = newFleetKey();
  /** Links as `evil`, and has `answer` answer words to one path, once; the others are in order. */
  const linked = async (
    path: string,
    answer: (stream: ServerHttp2Stream) => void,
  ): Promise<Socket> => {
    const { token: joinToken } = await fleet.registry.invite('evil');
    const opened = await dialled(fleet.port);
    sockets.push(opened);
    const hello: WorkerHello = {
      ...{ version: 1, clusterID: 'evil', clusterKey: own.publicKey, nonce: 'n' },
      ...{ replica: 'evil-0', address: 'ws://hub', half: newSecretHalf().publicKey },
    };
    let manager: ManagerHello;
    const hear = async (stream: ServerHttp2Stream, asked: string): Promise<void> => {
      const body = (await readWords(stream, 2 * MOST_TOLD)) as Record<string, string>;
      if (asked === '/hello') manager = ManagerHello.parse(body);
      stream.respond({ ':status': 200 });
      if (asked === path) return answer(stream);
      if (asked === '/leave') return; // it stays
      const said =
        asked === '/hello'
          ? hello
          : asked === '/prove'
            ? { signature: own.sign(transcriptOf('worker', manager, hello)), joinToken }
            : { number: (JSON.parse(body['text'] ?? '{}') as { number?: number }).number };
      stream.end(JSON.stringify(said));
    };
    const session = performServerHandshake(opened);
    session.on('error', () => undefined);
    session.on('stream', (stream, headers) => {
      stream.on('error', () => undefined);
      hear(stream, String(headers[':path'])).catch(() => undefined);
    });
    return opened;
  };
  const isCut = (socket: Socket, what: string): Promise<void> =>
    eventually(() => socket.destroyed, what);

  for (const path of ['/hello', '/prove', '/keys', '/templates', '/leave'])
    it(`closes that link only, at once, after reading little: ${path}`, async () => {
      const { linkId } = fleet.links.find('w2') ?? {};
      let sent: Promise<number> | undefined;
      const endless = await linked(path, (stream) => {
        sent = flood(stream);
      });
      await isCut(endless, 'one without end is cut');
      expect(await sent).to.be.lessThan(MOST_TAKEN);
      for (const [what, text] of Object.entries(WRONG)) {
        // any answer to that one says that the worker leaves
        if (path === '/leave' && what !== 'no JSON') continue;
        await isCut(await linked(path, (stream) => void stream.end(text)), what);
      }
      expect(fleet.links.find('w2')?.linkId).to.equal(linkId);
    });

  it('ignores the state of a template, after reading little', async () => {
    for (const text of [undefined, ...Object.values(WRONG)]) {
      let sent = Promise.resolve(0);
      const socket = await linked('/template', (stream) => {
        if (text === undefined) sent = flood(stream);
        else stream.end(text);
      });
      await fleet.linked('evil');
      expect(await fleet.links.report('evil', 'x')).to.equal(undefined);
      expect(await sent).to.be.lessThan(MOST_TAKEN);
      socket.destroy();
      await eventually(() => !fleet.links.find('evil'), 'it is gone');
    }
  });

  it('closes streams without an answer about a template, and logs it once', async () => {
    const open = new Set<ServerHttp2Stream>();
    let asked = 0;
    await linked('/template', (stream) => {
      asked += 1;
      open.add(stream);
      stream.once('close', () => open.delete(stream));
    });
    await fleet.linked('evil');
    const { linkId } = fleet.links.find('evil') ?? {};
    const reports = Array.from({ length: 40 }, () => fleet.links.report('evil', 'x'));
    await eventually(() => open.size === 40, 'it is asked');
    clock.advance(2_000);
    expect(new Set(await Promise.all(reports))).to.deep.equal(new Set([undefined]));
    await eventually(() => open.size === 0, 'no stream is open');
    expect([asked, fleet.links.find('evil')?.linkId]).to.deep.equal([40, linkId]);
    expect(warned).to.deep.equal(['global-template-not-reported']);
  });
});

describe('a worker whose manager sends invalid messages on the link', () => {
  const key = newFleetKey();
  let manager: TestManager;
  let links: WorkerLinks;
  let folder: string;
  let clock: TestClock;
  let told: string[];
  let sessions: ClientHttp2Session[];

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-worker-'));
    clock = new TestClock();
    [told, sessions] = [[], []];
    manager = await inManagersPlace((socket) => {
      const session = connect('http://worker', { createConnection: () => socket });
      session.on('error', () => undefined);
      sessions.push(session);
    });
    links = new WorkerLinks({
      clusterId: 'w1',
      replica: 'w1-0',
      managers: [`ws://127.0.0.1:${manager.port}`],
      credentials: credentialsIn(folder, newJoinToken(key.publicKey).text),
      clock,
      log: { ...silentLog, warn: ({ why }) => void told.push(String(why)) },
      keys: noCopies,
      templates: noTemplateCopies,
      serve: () => undefined,
    });
    links.start();
  });
  afterEach(async () => {
    links.stop();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    for (const session of sessions) session.destroy();
    await manager.stop();
  });

  const post = (session: ClientHttp2Session, path: string) => {
    const stream = session.request({ ':method': 'POST', ':path': path });
    stream.on('error', () => undefined);
    return stream;
  };
  const said = async (session: ClientHttp2Session, path: string, body: object) => {
    const stream = post(session, path);
    stream.end(JSON.stringify(body));
    return await readWords(stream);
  };
  /** Resolves with the next link, once the worker has dialled; `proved`: as its own manager's. */
  const linked = async ({ proved }: { readonly proved: boolean }): Promise<ClientHttp2Session> => {
    const count = sessions.length;
    let looks = 0;
    await eventually(() => {
      // soon past the longest wait between dials, and slowly then: a dial may take 10 s
      if (sessions.length === count) clock.advance((looks += 1) > 5 ? 50 : 1_000);
      return sessions.length > count;
    }, 'it dials');
    const session = sessions.at(-1) ?? expect.fail();
    if (!proved) return session;
    const hello: ManagerHello = {
      ...{ version: 1, managerKey: key.publicKey, nonce: 'n', replica: 'hub-0', channel: '' },
      half: newSecretHalf().publicKey,
    };
    const worker = WorkerHello.parse(await said(session, '/hello', hello));
    await said(session, '/prove', { signature: key.sign(transcriptOf('manager', hello, worker)) });
    return session;
  };
  const isCut = (session: ClientHttp2Session, what: string): Promise<void> =>
    eventually(() => session.closed || session.destroyed, what);

  for (const [path, proved] of [
    ['/hello', false],
    ['/prove', true],
    ['/keys', true],
    ['/templates', true],
    ['/welcome', true],
    ['/refused', true],
  ] as const)
    it(`closes the link after reading little, and reconnects: ${path}`, async () => {
      const endless = await linked({ proved });
      const stream = post(endless, path);
      const sent = flood(stream);
      await isCut(endless, 'one without end is cut');
      expect(await sent).to.be.lessThan(MOST_TAKEN);
      for (const [what, text] of Object.entries(WRONG)) {
        // out of turn these are no words at all, and are answered so
        if (proved && (path === '/prove' || path === '/welcome' || path === '/templates')) break;
        const session = await linked({ proved });
        post(session, path).end(text);
        await isCut(session, what);
      }
      await linked({ proved: true });
    });

  it('accepts few long unfinished messages at once', async () => {
    const session = await linked({ proved: true });
    const streams = Array.from({ length: 3 }, () => post(session, '/keys'));
    for (const stream of streams) stream.write(CHUNK);
    await isCut(session, 'it is cut');
  });
});
