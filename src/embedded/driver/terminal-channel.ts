import { Duplex } from 'node:stream';
import type { Terminal } from '../../contracts/sandbox-driver.ts';
import { ByteQueue } from '../../lib/streams/byte-queue.ts';
import { MAX_CHUNK } from '../spawner/frames.ts';
import { WINDOW, type DaemonMessage } from '../spawner/protocol.ts';

/** Bytes that have to be consumed before they are granted again. */
const GRANT = WINDOW / 8;
const BUFFER = 64 << 10;

export interface ChannelLink {
  readonly channel: number;
  send(message: DaemonMessage): void;
  input(bytes: Buffer): void;
  /** The channel is of no more use to its owner. */
  released(): void;
}

interface TerminalExit {
  readonly exitCode: number;
  readonly outOfMemory?: boolean;
}

/**
 * The daemon's end of a terminal. At most a window of bytes waits in either direction: a reader
 * that stalls stops the terminal, a terminal that takes nothing stops the writer. Its stream ends
 * after the last output, `exit` settles then.
 */
export class TerminalChannel implements Terminal {
  readonly stream: Duplex;
  readonly exit: Promise<number | null>;
  readonly #link: ChannelLink;
  readonly #incoming = new ByteQueue();
  #wanted = false;
  #consumed = 0;
  #credit = WINDOW;
  #outgoing: { bytes: Buffer; readonly done: () => void } | undefined;
  #exitCode: number | null | undefined;
  #outOfMemory = false;
  #closed = false;
  #settle: (exitCode: number | null) => void = () => {};

  constructor(link: ChannelLink) {
    this.#link = link;
    this.exit = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.stream = new Duplex({
      readableHighWaterMark: BUFFER,
      writableHighWaterMark: BUFFER,
      allowHalfOpen: false,
      read: () => {
        this.#wanted = true;
        this.#deliver();
      },
      write: (chunk: Buffer, _encoding, done) => {
        this.#outgoing = { bytes: chunk, done };
        this.#send();
      },
      final: (done) => done(),
      destroy: (_error, done) => {
        this.#hangUp();
        done(null);
      },
    });
    this.stream.once('end', () => this.#settleExit());
  }

  resize(cols: number, rows: number): void {
    if (!this.#over) this.#link.send({ type: 'resize', channel: this.#link.channel, cols, rows });
  }

  signal(name: string): void {
    if (!this.#over) this.#link.send({ type: 'signal', channel: this.#link.channel, name });
  }

  close(): void {
    this.stream.destroy();
  }

  /** Output from the spawner. */
  output(bytes: Buffer): void {
    if (this.#closed) return;
    this.#incoming.push(bytes);
    this.#deliver();
  }

  /** The spawner takes so many bytes more. */
  granted(bytes: number): void {
    this.#credit += bytes;
    this.#send();
  }

  /** The shell ended; no output follows. */
  exited({ exitCode, outOfMemory = false }: TerminalExit): void {
    this.#exitCode = exitCode;
    this.#outOfMemory = outOfMemory;
    this.#send();
    this.#deliver();
    // A hang-up waits for this; nobody may be reading any more.
    if (this.#closed) this.#settleExit();
  }

  /** The link to the shell is lost. */
  lost(): void {
    this.#exitCode ??= null;
    this.stream.destroy();
    this.#settleExit();
  }

  get outOfMemory(): boolean {
    return this.#outOfMemory;
  }

  get #over(): boolean {
    return this.#closed || this.#exitCode !== undefined;
  }

  #deliver(): void {
    while (this.#wanted) {
      const bytes = this.#incoming.shift();
      if (!bytes) break;
      this.#wanted = this.stream.push(bytes);
      this.#consume(bytes.length);
    }
    if (!this.#incoming.isEmpty || this.#exitCode === undefined || this.#closed) return;
    if (!this.stream.readableEnded) this.stream.push(null);
    if (this.stream.readableLength === 0) this.#settleExit();
  }

  #consume(bytes: number): void {
    this.#consumed += bytes;
    if (this.#consumed < GRANT || this.#over) return;
    this.#link.send({ type: 'credit', channel: this.#link.channel, bytes: this.#consumed });
    this.#consumed = 0;
  }

  #send(): void {
    const outgoing = this.#outgoing;
    if (!outgoing) return;
    while (outgoing.bytes.length > 0 && this.#credit > 0 && !this.#over) {
      const part = outgoing.bytes.subarray(0, Math.min(this.#credit, MAX_CHUNK));
      this.#link.input(part);
      this.#credit -= part.length;
      outgoing.bytes = outgoing.bytes.subarray(part.length);
    }
    if (outgoing.bytes.length > 0 && !this.#over) return;
    this.#outgoing = undefined;
    outgoing.done();
  }

  #hangUp(): void {
    if (this.#closed) return;
    if (this.#exitCode === undefined)
      this.#link.send({ type: 'close', channel: this.#link.channel });
    this.#closed = true;
    this.#incoming.takeAll();
    if (this.#exitCode !== undefined) this.#settleExit();
  }

  #settleExit(): void {
    this.#settle(this.#exitCode ?? null);
    this.#link.released();
  }
}
