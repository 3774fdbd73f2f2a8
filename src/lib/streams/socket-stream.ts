import { Duplex, type DuplexOptions } from 'node:stream';

/**
 * Replaces a `net.Socket` for bytes that travel another way, with the members that Node's HTTP
 * client and agent use. TCP options do nothing.
 *
 * Subclasses must call `moved` for all traffic.
 */
export abstract class SocketStream extends Duplex {
  readonly connecting = false;
  /** In ms; 0 or undefined for never. */
  timeout: number | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(options: DuplexOptions) {
    super(options);
    this.once('close', () => {
      clearTimeout(this.#idle);
    });
  }

  /** Emits `timeout` after this time without traffic; does not close the stream. */
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

  /** After all written bytes were sent. */
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
