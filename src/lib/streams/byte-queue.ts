/** Pieces at least so long are kept as they are. */
const LONG = 4_096;
const FIRST_BLOCK = 1_024;
const LONGEST_BLOCK = 16_384;

/**
 * Bytes that wait, in order. Short pieces are copied together: a sandbox may print each byte by
 * itself, and a piece costs a hundred bytes of its own besides what it was cut from.
 */
export class ByteQueue {
  readonly #blocks: Buffer[] = [];
  /** The last block while it is being filled, up to `#filled`. */
  #open = Buffer.alloc(0);
  #filled = 0;

  push(bytes: Buffer): void {
    if (bytes.length >= LONG) {
      this.#seal();
      this.#blocks.push(bytes);
      return;
    }
    if (this.#open.length - this.#filled < bytes.length) {
      const size = Math.min(
        LONGEST_BLOCK,
        Math.max(FIRST_BLOCK, bytes.length, 2 * this.#open.length),
      );
      this.#seal();
      this.#open = Buffer.allocUnsafeSlow(size);
    }
    bytes.copy(this.#open, this.#filled);
    this.#filled += bytes.length;
  }

  /** The first block, taken out; undefined where nothing waits. */
  shift(): Buffer | undefined {
    if (this.#blocks.length === 0) this.#seal();
    return this.#blocks.shift();
  }

  /** All of it, taken out. */
  takeAll(): Buffer {
    this.#seal();
    const [first = Buffer.alloc(0), ...others] = this.#blocks.splice(0);
    return others.length === 0 ? first : Buffer.concat([first, ...others]);
  }

  get isEmpty(): boolean {
    return this.#blocks.length === 0 && this.#filled === 0;
  }

  #seal(): void {
    if (this.#filled > 0) this.#blocks.push(this.#open.subarray(0, this.#filled));
    this.#open = this.#open.subarray(this.#filled);
    this.#filled = 0;
  }
}

/**
 * Feeds a Readable whose highWaterMark is 1: what waits for its reader takes little more memory
 * than it has bytes, however short the pieces are that it came in.
 */
export class ByteInflow {
  readonly #push: (bytes: Buffer | null) => boolean;
  readonly #most: number;
  readonly #waiting = new ByteQueue();
  #bytes = 0;
  #isWanted = false;
  #isOver = false;

  constructor(push: (bytes: Buffer | null) => boolean, most: number) {
    this.#push = push;
    this.#most = most;
  }

  /** Nothing more is to be added before it is wanted. */
  get isFull(): boolean {
    return this.#bytes >= this.#most;
  }

  add(bytes: Buffer): void {
    this.#waiting.push(bytes);
    this.#bytes += bytes.length;
    this.#flow();
  }

  /** Nothing is added any more. */
  end(): void {
    this.#isOver = true;
    this.#flow();
  }

  /** To be called by the `read` of the Readable. */
  want(): void {
    this.#isWanted = true;
    this.#flow();
  }

  #flow(): void {
    while (this.#isWanted) {
      const next = this.#waiting.shift();
      if (!next) break;
      this.#bytes -= next.length;
      this.#isWanted = this.#push(next);
    }
    if (this.#isOver && this.#waiting.isEmpty) this.#push(null);
  }
}
