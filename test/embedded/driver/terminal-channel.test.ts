import { expect } from 'chai';
import { TerminalChannel } from '../../../src/embedded/driver/terminal-channel.ts';
import { WINDOW, type DaemonMessage } from '../../../src/embedded/spawner/protocol.ts';

const aChannel = () => {
  const sent: DaemonMessage[] = [];
  const input: Buffer[] = [];
  let released = 0;
  const channel = new TerminalChannel({
    channel: 5,
    send: (message) => sent.push(message),
    input: (bytes) => input.push(Buffer.from(bytes)),
    released: () => {
      released += 1;
    },
  });
  return {
    channel,
    sent,
    input,
    isReleased: () => released > 0,
    inputSize: () => input.reduce((sum, bytes) => sum + bytes.length, 0),
  };
};

describe("the daemon's end of a terminal", () => {
  it('grants credit only for data that was read', async () => {
    const { channel, sent } = aChannel();
    for (let size = 0; size < WINDOW; size += 4_096) channel.output(Buffer.alloc(4_096));
    expect(sent).to.deep.equal([]);
    let read = 0;
    channel.stream.on('data', (bytes: Buffer) => {
      read += bytes.length;
    });
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    expect(read).to.equal(WINDOW);
    const granted = sent.reduce(
      (sum, message) => sum + (message.type === 'credit' ? message.bytes : 0),
      0,
    );
    expect(granted).to.be.within((WINDOW * 3) / 4, WINDOW);
  });

  it('merges a hundred thousand single bytes for a reader that stalls', async () => {
    const { channel } = aChannel();
    for (let at = 0; at < 100_000; at += 1) channel.output(Buffer.from('x'));
    let [pieces, read] = [0, 0];
    channel.stream.on('data', (bytes: Buffer) => {
      pieces += 1;
      read += bytes.length;
    });
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    expect(read).to.equal(100_000);
    expect(pieces).to.be.below(100);
  });

  it('sends at most a window without new credit, and blocks the writer', async () => {
    const { channel, inputSize } = aChannel();
    let written = false;
    channel.stream.write(Buffer.alloc(WINDOW + 10), () => {
      written = true;
    });
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    expect([inputSize(), written]).to.deep.equal([WINDOW, false]);
    channel.granted(100);
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    expect([inputSize(), written]).to.deep.equal([WINDOW + 10, true]);
  });

  it('reports the exit code only after all output was read', async () => {
    const { channel, isReleased } = aChannel();
    let told: number | null | undefined;
    void channel.exit.then((code) => {
      told = code;
    });
    channel.output(Buffer.alloc(100_000));
    channel.exited({ exitCode: 3 });
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    expect(told).to.equal(undefined);
    for await (const chunk of channel.stream) void chunk;
    expect([await channel.exit, isReleased()]).to.deep.equal([3, true]);
  });

  it('hangs up once, and settles with the following exit code', async () => {
    const { channel, sent } = aChannel();
    channel.close();
    channel.close();
    channel.resize(1, 1);
    channel.exited({ exitCode: 129 });
    expect(await channel.exit).to.equal(129);
    expect(sent).to.deep.equal([{ type: 'close', channel: 5 }]);
  });

  it('ends without an exit code when the connection is lost', async () => {
    const { channel } = aChannel();
    channel.stream.resume();
    channel.lost();
    expect(await channel.exit).to.equal(null);
  });
});
