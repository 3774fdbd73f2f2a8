import { expect } from 'chai';
import { once } from 'node:events';
import { createHash, randomBytes } from 'node:crypto';
import {
  aTerminalDaemon,
  attached,
  closeOf,
  type FakeTerminal,
  type TerminalDaemon,
} from './terminal-support.ts';
import { eventually } from '../support/harness/eventually.ts';
import { standsStill } from '../support/harness/turns.ts';

const MIB = 1024 * 1024;
/**
 * More than the kernel takes for a reader that does not read (at most 4 MiB to send, 6 to receive),
 * and 1 MiB of ours.
 */
const FLOOD = 16 * MIB;
const V1 = ['sandpool.terminal.v1'];

const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

const standstill = (terminal: FakeTerminal): Promise<void> =>
  standsStill(() => terminal.pulled, 'the output');

describe('back-pressure of a terminal', () => {
  let daemon: TerminalDaemon;
  /** The clock stands still: what may be sent in a second is all. */
  const plenty = { frames: 100_000, bytes: 64 * MIB };
  beforeEach(async () => {
    daemon = await aTerminalDaemon({ frames: { connection: plenty, tenant: plenty } });
  });
  afterEach(() => daemon.close());

  it('pauses the terminal while the reader stalls, and loses nothing', async () => {
    const { ws, terminal } = await attached(daemon);
    const hash = createHash('sha256');
    let got = 0;
    ws.on('message', (data: Buffer) => {
      hash.update(data);
      got += data.length;
    });
    ws.pause();
    const output = randomBytes(FLOOD);
    terminal.print(output);
    await standstill(terminal);
    expect(terminal.pulled).to.be.lessThan(12 * MIB);
    daemon.clock.advance(59_000);
    ws.resume();
    await eventually(() => got === FLOOD, 'all output is there');
    expect(hash.digest('hex')).to.equal(digest(output));
  });

  it('closes with 4008 after 60 s without progress', async () => {
    const { ws, terminal } = await attached(daemon);
    ws.pause();
    terminal.print(Buffer.alloc(FLOOD));
    await standstill(terminal);
    daemon.clock.advance(59_999);
    expect(terminal.closes).to.equal(0);
    daemon.clock.advance(1);
    expect(terminal.closes).to.be.greaterThan(0);
    const closing = closeOf(ws);
    ws.resume();
    expect((await closing).code).to.equal(4008);
  });

  it("counts the 60 s from the reader's last progress", async () => {
    const { ws, terminal } = await attached(daemon);
    ws.pause();
    terminal.print(Buffer.alloc(3 * FLOOD));
    await standstill(terminal);
    daemon.clock.advance(50_000);
    const before = terminal.pulled;
    ws.resume();
    await eventually(() => terminal.pulled > before + MIB, 'the reader goes on');
    ws.pause();
    await standstill(terminal);
    expect(terminal.pulled, 'the flood was long enough').to.be.lessThan(3 * FLOOD);
    daemon.clock.advance(50_000);
    expect(terminal.closes).to.equal(0);
    daemon.clock.advance(10_000);
    expect(terminal.closes).to.be.greaterThan(0);
  });

  it('cuts the connection of a stalled reader that never reads its 4008', async () => {
    const { ws, terminal } = await attached(daemon);
    ws.pause();
    terminal.print(Buffer.alloc(FLOOD));
    await standstill(terminal);
    daemon.clock.advance(63_000);
    const closing = closeOf(ws);
    ws.resume();
    expect((await closing).code).to.be.oneOf([1006, 4008]);
    await eventually(() => daemon.clock.waiting === 0, 'no timer is left');
  });

  it('sends all output and the exit code to a slow reader after the shell ended', async () => {
    const { ws, terminal } = await attached(daemon, 'token=good', V1);
    const order: string[] = [];
    let got = 0;
    ws.on('message', (data: Buffer, isBinary) => {
      if (isBinary) got += data.length;
      else order.push(`${data.toString()} after ${got}`);
    });
    ws.pause();
    terminal.print(Buffer.alloc(FLOOD));
    terminal.exitWith(0);
    await standstill(terminal);
    daemon.clock.advance(30_000);
    const closing = closeOf(ws);
    ws.resume();
    expect((await closing).code).to.equal(1000);
    expect(order).to.deep.equal([`{"type":"exit","exitCode":0} after ${FLOOD}`]);
  });

  it('stops reading from the client while the terminal accepts no input, and loses nothing', async () => {
    const { ws, terminal } = await attached(daemon);
    terminal.full = true;
    const input = randomBytes(FLOOD);
    for (let from = 0; from < input.length; from += 32 * 1024)
      ws.send(input.subarray(from, from + 32 * 1024));
    await eventually(() => terminal.stream.writableLength > 0, 'some input is taken');
    await standsStill(() => ws.bufferedAmount, 'the input');
    expect(ws.bufferedAmount, 'the client has to wait').to.be.greaterThan(MIB);
    expect(terminal.stream.writableLength).to.be.lessThan(MIB);
    daemon.clock.advance(120_000);
    expect(terminal.closes, 'silence that is of our own making is not death').to.equal(0);
    terminal.drain();
    await eventually(() => terminal.typedBytes === FLOOD, 'all input is there');
    expect(digest(terminal.typedBytesJoined())).to.equal(digest(input));
  });

  it('limits the errors queued for a client that sends garbage and reads nothing', async () => {
    const { ws, terminal } = await attached(daemon, 'token=good', V1);
    ws.pause();
    terminal.print(Buffer.alloc(FLOOD));
    await standstill(terminal);
    for (let i = 0; i < 50_000; i += 1) ws.send('nonsense');
    ws.send(Buffer.from('last'));
    await eventually(() => terminal.typed === 'last', 'all is read');
    let got = 0;
    let complaints = 0;
    ws.on('message', (data: Buffer, isBinary) => {
      if (isBinary) got += data.length;
      else complaints += 1;
    });
    ws.resume();
    await eventually(() => got === FLOOD, 'all output is there');
    expect(complaints).to.be.lessThan(100);
  });

  it('allows a reader a minute for the last output and the close', async () => {
    const { ws, terminal } = await attached(daemon);
    ws.pause();
    terminal.print('the last words');
    terminal.exitWith(0);
    await eventually(() => terminal.closes > 0, 'the terminal is given back');
    daemon.clock.advance(59_999);
    expect(daemon.connections()).to.equal(1);
    daemon.clock.advance(1);
    await eventually(() => daemon.connections() === 0, 'the connection is cut');
  });

  it('does not wait for leftover processes that hold the terminal open', async () => {
    const { ws, terminal } = await attached(daemon, 'token=good', V1);
    const closing = closeOf(ws);
    const before = daemon.clock.waiting;
    terminal.held = true;
    terminal.print('from the shell');
    terminal.exitWith(0);
    await eventually(() => daemon.clock.waiting > before, 'the session looks for more output');
    daemon.clock.advance(250);
    expect((await closing).code).to.equal(1000);
  });
});

describe('a silent peer', () => {
  let daemon: TerminalDaemon;
  beforeEach(async () => {
    daemon = await aTerminalDaemon();
  });
  afterEach(() => daemon.close());

  it('is pinged every 20 s and stays while it answers', async () => {
    const { ws, terminal } = await attached(daemon);
    let pings = 0;
    ws.on('ping', () => {
      pings += 1;
    });
    for (let round = 1; round <= 5; round += 1) {
      daemon.clock.advance(20_000);
      await eventually(() => pings === round, 'the ping is there');
      ws.send('.'); // what comes after the pong shows that the pong was read
      await eventually(() => terminal.typedBytes === round, 'the answer was read');
    }
    expect(terminal.closes).to.equal(0);
  });

  it('is disconnected after 30 s when it is dead', async () => {
    const { terminal } = await attached(daemon, 'token=good', [], { autoPong: false });
    daemon.clock.advance(29_999);
    expect(terminal.closes).to.equal(0);
    daemon.clock.advance(1);
    await eventually(() => terminal.closes > 0, 'the terminal is given back');
    await eventually(() => daemon.clock.waiting === 0, 'no timer is left');
  });

  it('is disconnected 30 s after its last pong, even with a little output in transit', async () => {
    const { ws, terminal } = await attached(daemon, 'token=good', [], { autoPong: false });
    ws.pause();
    terminal.print(Buffer.alloc(32 * 1024));
    daemon.clock.advance(30_000);
    await eventually(() => terminal.closes > 0, 'the terminal is given back');
  });

  it('gets 60 s with much output in transit, since it may be reading slowly', async () => {
    const { ws, terminal } = await attached(daemon);
    ws.pause();
    terminal.print(Buffer.alloc(256 * 1024)); // all of it fits into the kernel
    await eventually(() => terminal.pulled === 256 * 1024, 'the output went out');
    daemon.clock.advance(79_999);
    expect(terminal.closes).to.equal(0);
    daemon.clock.advance(1);
    expect(terminal.closes).to.be.greaterThan(0);
    const closing = once(ws, 'close');
    ws.resume();
    expect((await closing)[0]).to.equal(4008);
  });
});
