import { SocketStream } from '../../lib/streams/socket-stream.ts';
import type { ChannelSocket } from './channel-socket.ts';

export type Channels = Pick<ChannelSocket, 'send' | 'pause' | 'resume'>;

const BUFFER = 32 << 10;
const CHUNK = 32 << 10;

/** Pauses the socket while its reader is behind. Calls `left` when destroyed. */
export class ChannelStream extends SocketStream {
  readonly #socket: Channels;
  readonly #channel: number;
  readonly #left: () => void;

  constructor(socket: Channels, channel: number, left: () => void) {
    super({ readableHighWaterMark: BUFFER, writableHighWaterMark: BUFFER, allowHalfOpen: false });
    this.#socket = socket;
    this.#channel = channel;
    this.#left = left;
  }

  arrived(bytes: Buffer): void {
    this.moved();
    if (bytes.length > 0 && !this.destroyed && !this.push(bytes)) this.#socket.pause();
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.moved();
    let at = 0;
    const next = (): void => {
      if (at >= chunk.length) return done();
      const part = chunk.subarray(at, at + CHUNK);
      at += part.length;
      this.#socket.send(this.#channel, part, next);
    };
    next();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#left();
    done(error);
  }
}
