import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { FleetUnderTest, noCopies, type JoinTerms } from './a-fleet.ts';

const HELLO = [
  'GET /fleet/link HTTP/1.1',
  'Host: hub',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sandpool-Link: endless',
];
/** A binary message of 2^53 - 1 bytes, masked with zeros. */
const HEAD = Buffer.from('82ff001fffffffffffff00000000', 'hex');

describe('a link that is one message without end', () => {
  let clock: TestClock;
  let fleet: FleetUnderTest;
  const sockets: Socket[] = [];
  let between: Server | undefined;

  beforeEach(async () => {
    clock = new TestClock();
    fleet = await FleetUnderTest.start({ clock });
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await fleet.stop();
    between?.closeAllConnections();
    between?.close();
    between = undefined;
  });

  /** A worker whose link goes through a server, which passes it on as it likes. */
  const linkThrough = async (
    upgrade: (...of: Parameters<FleetUnderTest['links']['upgrade']>) => void,
    part: Pick<JoinTerms, 'keys'> = {},
  ): Promise<void> => {
    between = createServer().on('upgrade', upgrade).listen(0, '127.0.0.1');
    await once(between, 'listening');
    const { port } = between.address() as AddressInfo;
    const { token: joinToken } = await fleet.registry.invite('w1');
    fleet.worker({
      ...{ clusterId: 'w1', serve: () => undefined, joinToken, ...part },
      manager: `ws://127.0.0.1:${port}`,
    });
  };

  const dial = async (): Promise<{ readonly socket: Socket; readonly came: () => Buffer }> => {
    const socket = connect(fleet.port, '127.0.0.1');
    sockets.push(socket);
    let came = Buffer.alloc(0);
    socket.on('data', (bytes: Buffer) => (came = Buffer.concat([came, bytes])));
    socket.on('error', () => undefined);
    socket.write(`${HELLO.join('\r\n')}\r\n\r\n`);
    await eventually(() => came.includes('\r\n\r\n'), 'it is agreed to');
    return { socket, came: () => came };
  };

  it('is a WebSocket to whoever stands between, and HTTP/2 within', async () => {
    const { socket, came } = await dial();
    socket.write(HEAD);
    await eventually(() => came().includes('PRI * HTTP/2.0'), 'the manager begins');
    const [answer = '', bytes = ''] = came().toString('latin1').split('\r\n\r\n');
    expect(answer).to.include('HTTP/1.1 101');
    expect(answer).to.include('Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo='); // RFC 6455, 1.3
    expect(Buffer.from(bytes, 'latin1').subarray(0, 10).toString('hex')).to.equal(
      '827f001fffffffffffff',
    );
  });

  it('is cut where something else begins, or nothing in time, or too many wait', async () => {
    const { socket: other } = await dial();
    other.write('\x82\x05hello, and more');
    await eventually(() => other.closed, 'it is cut');
    const idle = await Promise.all(Array.from({ length: 9 }, async () => (await dial()).socket));
    const open = (): number => idle.filter(({ closed }) => !closed).length;
    await eventually(() => open() === 8, 'one of them is cut');
    clock.advance(10_000);
    await eventually(() => open() === 0, 'all are cut');
  });

  it('stays one where the store of the worker fails, whatever the number of dials', async () => {
    let failures = 0;
    /** Since the last dial, in ms: less than a dial may take. */
    let moved = 0;
    const asked: unknown[] = [];
    const caughtUp = async (): Promise<void> => {
      if (failures === 4) return;
      failures += 1;
      throw new Error('the store takes nothing');
    };
    const keys: JoinTerms['keys'] = {
      ...noCopies,
      begin: (manager) => ({ ...noCopies.begin(manager), caughtUp }),
    };
    await linkThrough(
      (request, socket, head) => {
        asked.push(request.headers['sandpool-link']);
        moved = 0;
        fleet.links.upgrade(request, socket, head);
      },
      { keys },
    );
    await eventually(() => {
      if (failures > 0 && asked.length === failures && moved < 2_000) {
        moved += 100;
        clock.advance(100);
      }
      return fleet.links.find('w1') !== undefined;
    }, 'the store takes it at last');
    expect(asked).to.deep.equal(Array(5).fill('endless'));
  });

  it('becomes many messages where somebody between takes no such message', async () => {
    let dials = 0;
    await linkThrough((request, socket, head) => {
      dials += 1;
      if (request.headers['sandpool-link'] === undefined)
        return fleet.links.upgrade(request, socket, head);
      socket.on('error', () => undefined);
      socket.end(
        'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      );
    });
    const dialsThrice = (): boolean => {
      if (dials < 3) clock.advance(100);
      return dials === 3;
    };
    await eventually(dialsThrice, 'two dials come to nothing');
    await fleet.linked('w1');
  });

  it('becomes many messages where somebody between cuts it again and again', async () => {
    const cut: Duplex[] = [];
    let isMany = false;
    await linkThrough((request, socket, head) => {
      if (request.headers['sandpool-link'] === undefined) isMany = true;
      else cut.push(socket);
      fleet.links.upgrade(request, socket, head);
    });
    for (let links = 1; links <= 4; links += 1) {
      await fleet.linked('w1');
      expect([cut.length, isMany]).to.deep.equal([links, false]);
      cut.at(-1)?.destroy();
      await eventually(() => !fleet.links.find('w1'), 'it is cut');
      const dialsAgain = (): boolean => {
        if (cut.length === links && !isMany) clock.advance(100);
        return cut.length > links || isMany;
      };
      await eventually(dialsAgain, 'it dials again');
    }
    expect(isMany).to.equal(true);
    await fleet.linked('w1');
  });
});
