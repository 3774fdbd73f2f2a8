/** Pieces this long are kept without copying. */
const LONG = 4_096;
const FIRST_BLOCK = 1_024;
const LONGEST_BLOCK = 16_384;

/**
 * Joins short pieces by copying: a sandbox may print single bytes, and each piece would keep its
 * source buffer.
 */
export class ByteQueue {
  readonly #blocks: Buffer[] = [];
  /** Filled up to `#filled`. */
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

  shift(): Buffer | undefined {
    if (this.#blocks.length === 0) this.#seal();
    return this.#blocks.shift();
  }

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
 * For a Readable with a highWaterMark of 1. Buffered data takes little more memory than its bytes.
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

  /** The writer must wait until the reader wants more. */
  get isFull(): boolean {
    return this.#bytes >= this.#most;
  }

  add(bytes: Buffer): void {
    this.#waiting.push(bytes);
    this.#bytes += bytes.length;
    this.#flow();
  }

  end(): void {
    this.#isOver = true;
    this.#flow();
  }

  /** To be called from `read` of the Readable. */
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
