import type { Http2Stream } from 'node:http2';
import { SocketStream } from '../../lib/streams/socket-stream.ts';

/**
 * Makes a stream of HTTP/2 a connection that HTTP/1.1 can be spoken on, at either end. (Handed over
 * as it is, Node's parser reads past the stream's framing.) No more is read than is taken, and no
 * more is taken than the other side reads.
 */
export class TunnelSocket extends SocketStream {
  /** Its peer is the other end of a link, and no address of a client. */
  readonly remoteAddress: string | undefined = undefined;
  readonly #stream: Http2Stream;

  /** `client` where requests are sent from here: it ends once the other end has. */
  constructor(stream: Http2Stream, end: 'client' | 'server') {
    super({ allowHalfOpen: end === 'server', highWaterMark: BUFFERED_BYTES });
    this.#stream = stream;
    stream.on('data', (bytes: Buffer) => {
      this.moved();
      if (!this.push(bytes)) stream.pause();
    });
    stream.once('end', () => this.push(null));
    stream.on('error', (error) => this.destroy(error));
    stream.once('close', () => {
      if (!stream.readableEnded) this.destroy();
      else if (!this.writableFinished) this.destroy();
    });
  }

  override _read(): void {
    this.#stream.resume();
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void) {
    this.moved();
    this.#stream.write(bytes, done);
  }

  /** Sends at once what HTTP/1.1 writes at once, such as head and body. */
  override _writev(
    chunks: readonly { readonly chunk: Buffer }[],
    done: (error?: Error | null) => void,
  ): void {
    this.moved();
    const stream = this.#stream;
    stream.cork();
    for (const [at, { chunk }] of chunks.entries())
      stream.write(chunk, at === chunks.length - 1 ? done : undefined);
    stream.uncork();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#stream.end(() => done());
  }

  /**
   * Ends the stream in order, and drops what still comes of it: a peer that sees many streams reset
   * takes it for an attack and ends the whole link (CVE-2023-44487). Reset where the other side
   * does not end in time.
   */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const stream = this.#stream;
    done(error);
    if (stream.closed || stream.destroyed) return;
    stream.removeAllListeners('data');
    stream.resume();
    if (!stream.writableEnded) stream.end();
    const late = setTimeout(() => stream.close(), LINGER_MS).unref();
    stream.once('close', () => clearTimeout(late));
  }
}

const LINGER_MS = 5_000;
/** Each way. */
const BUFFERED_BYTES = 64 * 1024;
