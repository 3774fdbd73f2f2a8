import { Duplex, type DuplexOptions } from 'node:stream';

/**
 * Stands in for a `net.Socket` where bytes travel otherwise. It has all that Node's HTTP client
 * and its agent call on a socket beside the stream: the idle timeout, the reference count, and the
 * options of TCP, which have no meaning here and do nothing.
 *
 * Whoever extends it calls `moved` for each byte that comes or goes.
 */
export abstract class SocketStream extends Duplex {
  readonly connecting = false;
  /** ms without traffic after which `timeout` is emitted; 0 or undefined for never. */
  timeout: number | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(options: DuplexOptions) {
    super(options);
    this.once('close', () => {
      clearTimeout(this.#idle);
    });
  }

  /** Emits `timeout` once nothing moved for so many ms, and ends nothing by itself. */
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

  /** Destroys it once all that was written has gone out. */
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
