import { Duplex, type DuplexOptions } from 'node:stream';

/**
 * Replaces a `net.Socket` for bytes that travel another way. Implements the socket members that
 * Node's HTTP client and its agent use: the idle timeout, the reference count, and TCP options,
 * which do nothing here.
 *
 * Subclasses must call `moved` for all traffic.
 */
export abstract class SocketStream extends Duplex {
  readonly connecting = false;
  /** Time in ms without traffic after which it emits `timeout`; 0 or undefined for never. */
  timeout: number | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(options: DuplexOptions) {
    super(options);
    this.once('close', () => {
      clearTimeout(this.#idle);
    });
  }

  /** Emits `timeout` after this time in ms without traffic; does not close the stream. */
  setTimeout(ms: number, listener?: () => void): this {
    clearTimeout(this.#idle);
    this.#idle = undefined;
    this.timeout = ms;
    if (ms === 0) {
      if (listener) this.off('timeout', listener);
      return this;
    }
    if (listener) this.once('timeout', listener);
    if (!this.destroyed)
      this.#idle = setTimeout(() => {
        this.emit('timeout');
      }, ms).unref();
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  /** Destroys the stream after all written bytes were sent. */
  destroySoon(): void {
    if (this.writableFinished) {
      this.destroy();
      return;
    }
    this.once('finish', () => {
      this.destroy();
    });
    if (this.writable) this.end();
  }

  protected moved(): void {
    this.#idle?.refresh();
  }
}
