import { expect } from 'chai';
import type { WebSocket } from 'ws';
import { eventually } from '../support/harness/eventually.ts';
import {
  aTerminalDaemon,
  attached,
  type FakeTerminal,
  type TerminalDaemon,
} from './terminal-support.ts';

const PLENTY = { frames: 100_000, bytes: 1_000_000_000 };

/** More than one read of the socket holds. */
const FLOOD = 40_000;

describe('a flood of frames to a terminal', () => {
  let daemon: TerminalDaemon;
  afterEach(() => daemon.close());

  const flooded = async (
    send: (ws: WebSocket) => void,
  ): Promise<{ readonly ws: WebSocket; readonly terminal: FakeTerminal }> => {
    daemon = await aTerminalDaemon({
      frames: { connection: { frames: 100, bytes: 1_000_000 }, tenant: PLENTY },
    });
    const { ws, terminal } = await attached(daemon, 'token=good', ['sandpool.terminal.v1']);
    for (let at = 0; at < FLOOD; at += 1) send(ws);
    return { ws, terminal };
  };

  /** Resolves once the daemon has not read anything more for so many turns of the loop. */
  const settled = async (amount: () => number): Promise<number> => {
    let still = 0;
    for (let seen = -1; still < 200;) {
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
      still = amount() === seen && seen > 0 ? still + 1 : 0;
      seen = amount();
    }
    return amount();
  };

  it('is read one frame per connection and turn, however many arrive at once', async () => {
    daemon = await aTerminalDaemon({ frames: { connection: PLENTY, tenant: PLENTY } });
    const { ws, terminal } = await attached(daemon);
    let most = 0;
    let before = 0;
    let over = false;
    const look = (): void => {
      most = Math.max(most, terminal.typedBytes - before);
      before = terminal.typedBytes;
      if (!over) setImmediate(look);
    };
    look();
    for (let at = 0; at < 5_000; at += 1) ws.send('x');
    await eventually(() => terminal.typedBytes === 5_000, 'all are typed');
    over = true;
    expect(most).to.be.at.most(2);
  });

  it('of one byte each pauses the connection, and all arrive over time', async () => {
    const { terminal } = await flooded((ws) => {
      ws.send(Buffer.from('x'));
    });
    expect(await settled(() => terminal.typedBytes)).to.be.below(FLOOD);
    await eventually(() => {
      daemon.clock.advance(1_000);
      return terminal.typedBytes === FLOOD;
    }, 'all are typed');
  });

  it('includes pings, which are counted and answered later', async () => {
    let pongs = 0;
    const { ws } = await flooded((each) => {
      each.ping();
    });
    ws.on('pong', () => {
      pongs += 1;
    });
    expect(await settled(() => pongs)).to.be.below(FLOOD);
  });

  it("also delays other terminals of its tenant, and nobody else's", async () => {
    daemon = await aTerminalDaemon({
      frames: { connection: PLENTY, tenant: { frames: 100, bytes: 1_000_000 } },
    });
    const noisy = await attached(daemon, 'token=good');
    const same = await attached(daemon, 'token=good');
    const other = await attached(daemon, 'token=other');
    for (let at = 0; at < 1_000; at += 1) noisy.ws.send('x');
    await eventually(() => noisy.terminal.typedBytes >= 101, 'the tenant owes frames');
    same.ws.send('a');
    await settled(() => noisy.terminal.typedBytes);
    same.ws.send('b');
    other.ws.send('c');
    await eventually(() => other.terminal.typed === 'c', 'another tenant types');
    other.ws.send('d');
    await eventually(() => other.terminal.typed === 'cd', 'another tenant types on');
    expect(same.terminal.typed).to.equal('a');
    daemon.clock.advance(20_000);
    await eventually(() => same.terminal.typed === 'ab', 'it is read again');
  });

  it('of sizes applies the first and the last', async () => {
    daemon = await aTerminalDaemon();
    const { ws, terminal } = await attached(daemon, 'token=good', ['sandpool.terminal.v1']);
    for (let cols = 1; cols <= 90; cols += 1)
      ws.send(JSON.stringify({ type: 'resize', cols, rows: 10 }));
    ws.send(Buffer.from('end'));
    await eventually(() => terminal.typed === 'end', 'all are read');
    daemon.clock.advance(100);
    expect(terminal.sizes).to.deep.equal(['1x10', '90x10']);
  });
});
