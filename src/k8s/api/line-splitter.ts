import { ByteQueue } from '../../lib/streams/byte-queue.ts';

/**
 * Cuts a stream of bytes into lines. Keeps what is not yet a whole line, at most `longest` bytes of
 * it.
 */
export class LineSplitter {
  readonly #longest: number;
  readonly #rest = new ByteQueue();
  #size = 0;

  constructor(longest: number) {
    this.#longest = longest;
  }

  /**
   * The lines that the chunk completes, without their ends. Throws a RangeError at a line that is
   * too long.
   */
  push(chunk: Buffer): string[] {
    const lines: string[] = [];
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      this.#keep(chunk.subarray(from, end));
      lines.push(this.#take());
      from = end + 1;
    }
    this.#keep(chunk.subarray(from));
    return lines;
  }

  #keep(part: Buffer): void {
    if (part.length === 0) return;
    this.#size += part.length;
    if (this.#size > this.#longest)
      throw new RangeError(`a line of more than ${this.#longest} bytes`);
    this.#rest.push(part);
  }

  #take(): string {
    this.#size = 0;
    return this.#rest.takeAll().toString('utf8');
  }
}

const NEWLINE = 0x0a;
