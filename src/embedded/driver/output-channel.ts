import type { ProcessFact, ProcessOutput } from '../../model/process.ts';
import { PIECE_BYTES, READ_WINDOW } from '../spawner/protocol.ts';

/** Bytes that have to be consumed before they are granted again. */
const GRANT = READ_WINDOW / 4;

export interface OutputChannelLink {
  credit(bytes: number): void;
  /** Nobody reads on. */
  close(): void;
}

/**
 * The daemon's end of a reading of a process's output. At most a window of bytes waits in it. To be
 * read once, or left.
 */
export class OutputChannel {
  readonly #link: OutputChannelLink;
  readonly #waiting: ProcessOutput[] = [];
  #position = 0;
  #consumed = 0;
  #isOver = false;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(link: OutputChannelLink) {
    this.#link = link;
  }

  position(position: number): void {
    this.#position = position;
  }

  output(stream: 'stdout' | 'stderr', bytes: Buffer): void {
    this.#position += bytes.length;
    this.#push({ kind: 'bytes', stream, bytes, next: String(this.#position) });
  }

  dropped(bytes: number): void {
    this.#position += bytes;
    this.#push({ kind: 'dropped', bytes, next: String(this.#position) });
  }

  ended(fact: ProcessFact): void {
    this.#isOver = true;
    this.#push({ kind: 'end', fact, next: String(this.#position) });
  }

  failed(error: Error): void {
    this.#isOver = true;
    this.#failure = error;
    this.#wake?.();
  }

  async *read(signal: AbortSignal): AsyncGenerator<ProcessOutput, void, undefined> {
    const wake = (): void => this.#wake?.();
    signal.addEventListener('abort', wake, { once: true });
    try {
      while (!signal.aborted) {
        const next = this.#waiting.shift();
        if (next) {
          yield next;
          if (next.kind === 'end') return;
          this.#consume(PIECE_BYTES + (next.kind === 'bytes' ? next.bytes.length : 0));
        } else if (this.#failure) throw this.#failure;
        else if (this.#isOver) return;
        else await this.#something();
      }
    } finally {
      signal.removeEventListener('abort', wake);
      this.leave();
    }
  }

  /** May be repeated. */
  leave(): void {
    this.#waiting.length = 0;
    if (this.#isOver) return;
    this.#isOver = true;
    this.#link.close();
  }

  #something(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #push(output: ProcessOutput): void {
    this.#waiting.push(output);
    this.#wake?.();
  }

  #consume(bytes: number): void {
    this.#consumed += bytes;
    if (this.#consumed < GRANT || this.#isOver) return;
    this.#link.credit(this.#consumed);
    this.#consumed = 0;
  }
}
