const NOTHING = Buffer.alloc(0);

/**
 * Cuts bytes into pieces of a length at most that end between two characters of UTF-8: some SDKs
 * decode each piece by itself. Bytes that are no text are cut anywhere. Pieces may share the memory
 * of what they were cut from.
 */
export class WholeCharacters {
  readonly #most: number;
  /** Begins a character whose end has not come: three bytes at most. */
  #begun: Buffer = NOTHING;

  constructor(most: number) {
    this.#most = most;
  }

  *pieces(bytes: Buffer): Generator<Buffer, void, undefined> {
    let left = this.#begun.length === 0 ? bytes : Buffer.concat([this.#begun, bytes]);
    while (left.length > this.#most) {
      const end = this.#most - begunAt(left.subarray(0, this.#most));
      yield left.subarray(0, end);
      left = left.subarray(end);
    }
    const end = left.length - begunAt(left);
    this.#begun = end === left.length ? NOTHING : Buffer.from(left.subarray(end));
    if (end > 0) yield left.subarray(0, end);
  }

  /** Yields what was held back, where there is something. */
  *rest(): Generator<Buffer, void, undefined> {
    if (this.#begun.length > 0) yield this.#begun;
    this.#begun = NOTHING;
  }
}

/** Returns how many bytes at the end begin a character that they do not end. */
const begunAt = (bytes: Buffer): number => {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return lengthOf(byte) > back ? back : 0;
  }
  return 0;
};

const lengthOf = (first: number): number => {
  if (first >= 0xf8) return 1;
  if (first >= 0xf0) return 4;
  return first >= 0xe0 ? 3 : 2;
};
