import { expect } from 'chai';
import { connect, type Socket } from 'node:net';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { FleetUnderTest } from './a-fleet.ts';
import { HELLO } from './hostile-ends.ts';

/** A binary message of 2^53 - 1 bytes, masked with zeros. */
const HEAD = Buffer.from('82ff001fffffffffffff00000000', 'hex');

describe('the connection of a link', () => {
  let clock: TestClock;
  let fleet: FleetUnderTest;
  const sockets: Socket[] = [];

  beforeEach(async () => {
    clock = new TestClock();
    fleet = await FleetUnderTest.start({ clock });
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await fleet.stop();
  });

  const dial = async (): Promise<{ readonly socket: Socket; readonly came: () => Buffer }> => {
    const socket = connect(fleet.port, '127.0.0.1');
    sockets.push(socket);
    let came = Buffer.alloc(0);
    socket.on('data', (bytes: Buffer) => (came = Buffer.concat([came, bytes])));
    socket.on('error', () => undefined);
    socket.write(HELLO);
    await eventually(() => came.includes('\r\n\r\n'), 'it is agreed to');
    return { socket, came: () => came };
  };

  it('looks like a WebSocket outside, and carries HTTP/2 inside', async () => {
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

  it('is closed after other bytes, after silence, or if too many wait', async () => {
    const { socket: other } = await dial();
    other.write('\x82\x05hello, and more');
    await eventually(() => other.closed, 'it is cut');
    const idle = await Promise.all(Array.from({ length: 9 }, async () => (await dial()).socket));
    const open = (): number => idle.filter(({ closed }) => !closed).length;
    await eventually(() => open() === 8, 'one of them is cut');
    clock.advance(10_000);
    await eventually(() => open() === 0, 'all are cut');
  });
});
