import { expect } from 'chai';
import { once } from 'node:events';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import { Heartbeat } from '../../src/fleet/link/heartbeat.ts';
import { linkChannel, type LinkChannel } from '../../src/fleet/link/link-channel.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { onACertificate } from '../support/harness/on-a-certificate.ts';
import { standsStill, turns } from '../support/harness/turns.ts';

/** SETTINGS with windows of 2^30 bytes, and the same for all streams together. */
const TAKES_MUCH = Buffer.from(
  '000006040000000000000440000000000004080000000000' + '3fff0000',
  'hex',
);
const PIECE = Buffer.alloc(64 * 1024, 'x');

for (const scheme of ['ws', 'wss'] as const)
  describe(`a slow link by ${scheme}`, function () {
    const certificate = onACertificate();
    let server: Server;
    let other: Socket;
    let session: ClientHttp2Session;
    let channel: LinkChannel;

    beforeEach(async () => {
      server = scheme === 'ws' ? createServer() : createTlsServer(certificate());
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const came = once(server, scheme === 'ws' ? 'connection' : 'secureConnection');
      const socket =
        scheme === 'ws'
          ? connect(port, '127.0.0.1')
          : connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
      const isOpen = once(socket, scheme === 'ws' ? 'ready' : 'secureConnect');
      [other] = (await came) as [Socket];
      other.on('error', () => undefined);
      other.pause().write(TAKES_MUCH);
      await isOpen;
      channel = linkChannel(socket);
      session = connectHttp2('http://worker', { createConnection: () => socket });
      session.on('error', () => undefined);
      await once(session, 'remoteSettings');
    });
    afterEach(() => {
      session?.destroy();
      other?.destroy();
      server.close();
    });

    /** Sends as much as goes, until nothing more does. */
    const fill = async (): Promise<void> => {
      const stream = session.request({ ':method': 'POST', ':path': '/' });
      stream.on('error', () => undefined);
      const go = (): void => {
        while (stream.write(PIECE));
      };
      stream.on('drain', go);
      go();
      const beyondOne = (): number => channel.written() - PIECE.length;
      await standsStill(beyondOne, 'what goes');
    };

    /** Has the other end's process take bytes until its kernel says so. */
    const take = async (): Promise<void> => {
      const before = (await channel.moved()) ?? 0;
      await eventually(async () => {
        other.read();
        return ((await channel.moved()) ?? 0) > before;
      }, 'bytes are acknowledged');
    };

    /** Until the kernel has moved all that it can of what was taken. */
    const rests = async (): Promise<void> => {
      let [last, looks] = [-1, 0];
      await eventually(async () => {
        const now = (await channel.moved()) ?? 0;
        looks = now === last ? looks + 1 : 0;
        last = now;
        return looks >= 10;
      }, 'nothing is acknowledged any more');
    };

    it('is healthy while the other end reads, and silent and then dead once it does not', async () => {
      await fill();
      const clock = new TestClock();
      const told: string[] = [];
      let heard = 0;
      let looking: Promise<unknown> = Promise.resolve();
      const moved = () => {
        const look = channel.moved();
        looking = look;
        return look;
      };
      const heartbeat = new Heartbeat(session, {
        ...{ clock, channel: { ...channel, moved } },
        heard: () => (heard += 1),
        dead: (why) => void told.push(why),
      });
      heartbeat.start();
      const received = channel.received();
      clock.advance(2_000); // what was read is noted, then what the kernel says
      await looking;
      for (let seconds = 0; seconds < 20;) {
        const before = heard;
        heartbeat.probe(() => void told.push('silent'));
        // A look may come on a number that was too much; the next one does not.
        for (let looks = 0; heard === before && looks < 4; looks += 1, seconds += 1) {
          await take();
          clock.advance(1_000);
          await looking;
        }
        expect(heard).to.be.greaterThan(before);
      }
      expect([told, heartbeat.isSilent]).to.deep.equal([[], false]);
      expect(channel.received()).to.equal(received);

      await rests();
      clock.advance(1_000); // what still came of the last bytes that were taken counts as heard
      await looking;
      heartbeat.probe(() => void told.push('silent'));
      clock.advance(5_000);
      await turns();
      expect([told, heartbeat.isSilent]).to.deep.equal([['silent'], true]);
      clock.advance(11_000);
      await turns();
      expect(told).to.deep.equal(['silent', 'no message arrived for 15 s']);
      heartbeat.stop();
    });
  });
