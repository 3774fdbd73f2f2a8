import { expect } from 'chai';
import { once } from 'node:events';
import type { WebSocket } from 'ws';
import { aTerminalDaemon, attached, closeOf, type TerminalDaemon } from './terminal-support.ts';
import { eventually } from '../support/harness/eventually.ts';

const V1 = ['sandpool.terminal.v1'];

/** Everything that the client gets, in order: bytes joined, text frames parsed. */
const listen = (ws: WebSocket) => {
  const heard = { bytes: Buffer.alloc(0), frames: [] as unknown[], order: [] as string[] };
  ws.on('message', (data: Buffer, isBinary) => {
    heard.order.push(isBinary ? 'bytes' : 'frame');
    if (isBinary) heard.bytes = Buffer.concat([heard.bytes, data]);
    else heard.frames.push(JSON.parse(data.toString()));
  });
  return heard;
};

describe('a terminal over WebSocket', () => {
  let daemon: TerminalDaemon;
  beforeEach(async () => {
    daemon = await aTerminalDaemon();
  });
  afterEach(() => daemon.close());

  describe('without a subprotocol', () => {
    it('accepts text and binary frames as input', async () => {
      const { ws, terminal } = await attached(daemon);
      ws.send('echo hi');
      ws.send(Buffer.from('\r'));
      ws.send('{"type":"resize","cols":10,"rows":10}');
      await eventually(
        () => terminal.typed === 'echo hi\r{"type":"resize","cols":10,"rows":10}',
        'all is typed',
      );
      expect(terminal.sizes).to.deep.equal([]);
    });

    it('sends output as binary frames, byte for byte', async () => {
      const { ws, terminal } = await attached(daemon);
      const heard = listen(ws);
      const output = Buffer.from([0, 255, 27, 91, 200, 10]);
      terminal.print(output);
      await eventually(() => heard.bytes.equals(output), 'the output is there');
      expect(heard.order).to.deep.equal(['bytes']);
    });

    it('closes with 1000 and no further frame when the shell ends', async () => {
      const { ws, terminal } = await attached(daemon);
      const heard = listen(ws);
      const closing = closeOf(ws);
      terminal.print('bye');
      terminal.exitWith(3);
      expect((await closing).code).to.equal(1000);
      expect(heard.order).to.deep.equal(['bytes']);
      expect(terminal.closes).to.be.greaterThan(0);
    });
  });

  describe('with sandpool.terminal.v1', () => {
    it('resizes and signals by text frames, and treats binary frames as bytes', async () => {
      const { ws, terminal } = await attached(daemon, 'token=good', V1);
      ws.send('{"type":"resize","cols":132,"rows":50}');
      ws.send('{"type":"signal","name":"INT"}');
      ws.send(Buffer.from('{"type":"signal","name":"KILL"}'));
      await eventually(
        () => terminal.typed === '{"type":"signal","name":"KILL"}',
        'the bytes are typed',
      );
      expect(terminal.sizes).to.deep.equal(['132x50']);
      expect(terminal.signals).to.deep.equal(['INT']);
    });

    it('sends the last output, then the exit code, then closes with 1000', async () => {
      const { ws, terminal } = await attached(daemon, 'token=good', V1);
      const heard = listen(ws);
      const closing = closeOf(ws);
      terminal.print('the end');
      terminal.exitWith(7);
      expect((await closing).code).to.equal(1000);
      expect(heard.bytes.toString()).to.equal('the end');
      expect(heard.frames).to.deep.equal([{ type: 'exit', exitCode: 7 }]);
      expect(heard.order).to.deep.equal(['bytes', 'frame']);
    });

    it('reports lack of memory', async () => {
      const { ws, terminal } = await attached(daemon, 'token=good', V1);
      const heard = listen(ws);
      const closing = closeOf(ws);
      terminal.outOfMemory = true;
      terminal.exitWith(1);
      await closing;
      expect(heard.frames).to.deep.equal([{ type: 'exit', exitCode: 1, oomKilled: true }]);
    });

    const BAD = [
      'no json',
      '[]',
      'null',
      '{}',
      '{"type":"paste"}',
      '{"type":"resize"}',
      '{"type":"resize","cols":0,"rows":5}',
      '{"type":"resize","cols":5,"rows":1001}',
      '{"type":"resize","cols":"5","rows":5}',
      '{"type":"resize","cols":1.5,"rows":5}',
      '{"type":"signal","name":"SEGV"}',
      '{"type":"signal"}',
      `{"type":"resize","cols":5,"rows":5,"x":"${'y'.repeat(5_000)}"}`,
      '['.repeat(60_000),
    ];
    for (const frame of BAD) {
      it(`answers ${frame.slice(0, 40)} with an error and continues`, async () => {
        const { ws, terminal } = await attached(daemon, 'token=good', V1);
        const heard = listen(ws);
        ws.send(frame);
        ws.send(Buffer.from('on'));
        await eventually(() => heard.frames.length === 1, 'the error is there');
        await eventually(() => terminal.typed === 'on', 'the terminal goes on');
        const [error] = heard.frames as { type: string; error: string }[];
        expect(error?.type).to.equal('error');
        expect(error?.error).to.be.a('string').that.is.not.empty;
        expect([terminal.sizes, terminal.signals]).to.deep.equal([[], []]);
      });
    }

    it('refuses more than 100 control frames in a second', async () => {
      const { ws, terminal } = await attached(daemon, 'token=good', V1);
      const heard = listen(ws);
      for (let i = 1; i <= 101; i += 1) ws.send(`{"type":"resize","cols":${i},"rows":1}`);
      await eventually(() => heard.frames.length === 1, 'the error is there');
      expect(terminal.sizes).to.deep.equal(['1x1']);
      daemon.clock.advance(1_000);
      expect(terminal.sizes).to.deep.equal(['1x1', '100x1']);
      ws.send('{"type":"resize","cols":500,"rows":1}');
      await eventually(() => terminal.sizes.at(-1) === '500x1', 'it is taken again');
    });

    it("reports the loss of the terminal's connection, and closes with 1011", async () => {
      const { ws, terminal } = await attached(daemon, 'token=good', V1);
      const heard = listen(ws);
      const closing = closeOf(ws);
      terminal.exitWith(null);
      await eventually(() => daemon.clock.waiting >= 2, 'the session waits for the sandbox’s end');
      daemon.clock.advance(500);
      expect((await closing).code).to.equal(1011);
      expect(heard.frames).to.deep.equal([
        { type: 'error', error: 'the link to the terminal was lost' },
      ]);
    });
  });

  it('closes with 4004 when the sandbox ends', async () => {
    const { ws, terminal } = await attached(daemon);
    const closing = closeOf(ws);
    terminal.end();
    expect((await closing).code).to.equal(4004);
    expect(terminal.closes).to.be.greaterThan(0);
  });

  it('closes with 4001 when the key is revoked', async () => {
    const { ws, terminal } = await attached(daemon);
    const closing = closeOf(ws);
    terminal.end('key-revoked');
    expect((await closing).code).to.equal(4001);
    expect(terminal.closes).to.be.greaterThan(0);
  });

  it('closes with 4004 even if the end of the shell is reported before that of the sandbox', async () => {
    const { ws, terminal } = await attached(daemon, 'token=good', V1);
    const heard = listen(ws);
    const closing = closeOf(ws);
    const before = daemon.clock.waiting;
    terminal.exitWith(137);
    await eventually(
      () => daemon.clock.waiting > before,
      'the session waits for the sandbox’s end',
    );
    terminal.end();
    expect((await closing).code).to.equal(4004);
    expect(heard.frames).to.deep.equal([]);
  });

  it('closes with 1012 when the daemon stops, and stop waits for it', async () => {
    const { ws, terminal } = await attached(daemon);
    const closing = closeOf(ws);
    await daemon.stopTerminals();
    expect((await closing).code).to.equal(1012);
    expect(terminal.closes).to.be.greaterThan(0);
    expect(daemon.clock.waiting, 'timers left').to.equal(0);
  });

  it('disconnects a client that ignores the close of a stopping daemon', async () => {
    const { ws } = await attached(daemon);
    ws.pause();
    const stopping = daemon.stopTerminals();
    daemon.clock.advance(3_000);
    await stopping;
  });

  it('closes with 1009 on a message over 64 KiB, and accepts one of exactly that size', async () => {
    const { ws, terminal } = await attached(daemon);
    ws.send(Buffer.alloc(64 * 1024, 'a'));
    await eventually(() => terminal.typedBytes === 64 * 1024, '64 KiB are typed');
    const closing = closeOf(ws);
    ws.send(Buffer.alloc(64 * 1024 + 1, 'a'));
    expect((await closing).code).to.equal(1009);
    await eventually(() => terminal.closes > 0, 'the terminal is given back');
  });

  it('releases the terminal when the client disconnects', async () => {
    const { ws, terminal } = await attached(daemon);
    ws.close();
    await eventually(() => terminal.closes > 0, 'the terminal is closed');
    await eventually(() => daemon.clock.waiting === 0, 'no timer is left');
  });

  it('counts traffic in both directions as activity, at most once a second', async () => {
    const { ws, terminal } = await attached(daemon);
    const heard = listen(ws);
    for (let i = 0; i < 50; i += 1) ws.send('x');
    await eventually(() => terminal.typedBytes === 50, 'all is typed');
    expect(terminal.touches).to.equal(1);
    daemon.clock.advance(1_000);
    terminal.print('output');
    await eventually(() => heard.bytes.length > 0, 'the output is there');
    expect(terminal.touches).to.equal(2);
  });

  it('does not negotiate compression', async () => {
    const { ws } = await attached(daemon, 'token=good', [], { perMessageDeflate: true });
    expect(ws.extensions).to.equal('');
  });

  it('answers pings', async () => {
    const { ws } = await attached(daemon);
    ws.ping('are you there');
    const [data] = (await once(ws, 'pong')) as [Buffer];
    expect(data.toString()).to.equal('are you there');
  });
});
