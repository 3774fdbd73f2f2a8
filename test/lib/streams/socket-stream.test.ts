import { once } from 'node:events';
import { mock } from 'node:test';
import { expect } from 'chai';
import { SocketStream } from '../../../src/lib/streams/socket-stream.ts';

class Held extends SocketStream {
  readonly written: (() => void)[] = [];

  constructor() {
    super({ allowHalfOpen: false });
  }

  arrive(text: string): void {
    this.moved();
    this.push(text);
  }

  override _read(): void {
    /* what comes is pushed */
  }

  override _write(_chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.written.push(done);
  }
}

describe('a stream in place of a socket', () => {
  afterEach(() => {
    mock.restoreAll();
  });

  it('reports that nothing moved, and continues', async () => {
    const stream = new Held();

    await once(stream.setTimeout(5), 'timeout');

    expect(stream.destroyed).to.equal(false);
    stream.destroy();
  });

  it('restarts its timeout whenever something moved', () => {
    let begun = 0;
    const timer = {
      unref: () => timer,
      refresh: () => {
        begun += 1;
      },
    };
    mock.method(globalThis, 'setTimeout', () => timer);
    const stream = new Held();
    stream.setTimeout(40);

    stream.arrive('x');
    stream.arrive('y');

    expect(begun).to.equal(2);
  });

  it('forgets its timeout and listener', () => {
    const stream = new Held();
    const tell = (): void => undefined;

    stream.setTimeout(1_000, tell).setTimeout(0, tell);

    expect(stream.timeout).to.equal(0);
    expect(stream.listenerCount('timeout')).to.equal(0);
  });

  it('is destroyed soon after its last write', async () => {
    const stream = new Held();
    stream.write('last words');

    stream.destroySoon();
    expect(stream.destroyed).to.equal(false);
    stream.written.pop()?.();

    await once(stream, 'close');
  });
});
