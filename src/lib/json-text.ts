import { isUtf8 } from 'node:buffer';

/** Bytes of text that are turned into JSON at once. */
const PIECE = 32 << 10;
const LONGEST_CHARACTER = 4;

/** By character below 128, how many bytes JSON puts in its place beyond the one that it is. */
const ESCAPES = Uint8Array.from({ length: 256 }, (_, code) =>
  code < 128 ? JSON.stringify(String.fromCharCode(code)).length - 3 : 0,
);

/**
 * Returns how many bytes these are inside a JSON string, or a few more where they begin or end
 * within a character. Nothing is turned into JSON for it: tenants print megabytes.
 */
export const jsonLength = (bytes: Buffer): number => {
  let length = isUtf8(bytes) ? bytes.length : lengthMended(bytes);
  for (let at = 0; at < bytes.length; at += 1) length += ESCAPES[bytes[at] ?? 0] ?? 0;
  return length;
};

/** Returns how many bytes these are once U+FFFD stands for what is not UTF-8. */
const lengthMended = (bytes: Buffer): number => {
  let length = 0;
  for (const piece of piecesOf(bytes)) length += Buffer.byteLength(piece.toString('utf8'));
  return length;
};

/**
 * Text as bytes, to be a value in JSON without ever being one large string. Bytes that are not
 * UTF-8 become U+FFFD. `cut`: the last character may have lost its end, and is left out then.
 */
export class TextBytes {
  readonly bytes: Buffer;
  readonly #cut: boolean;

  constructor(bytes: Buffer, { cut = false }: { readonly cut?: boolean } = {}) {
    this.bytes = bytes;
    this.#cut = cut;
  }

  toJSON(): string {
    return this.#decode(this.bytes, this.#cut);
  }

  /** The JSON string, as `JSON.stringify` would make it, in pieces of some hundred KB at most. */
  *json(): Generator<Buffer, void, undefined> {
    yield QUOTE;
    let done = 0;
    for (const piece of piecesOf(this.bytes)) {
      done += piece.length;
      const text = this.#decode(piece, this.#cut && done === this.bytes.length);
      yield Buffer.from(JSON.stringify(text).slice(1, -1));
    }
    yield QUOTE;
  }

  #decode(bytes: Buffer, cut: boolean): string {
    if (!cut) return bytes.toString('utf8');
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true });
  }
}

const QUOTE = Buffer.from('"');

function* piecesOf(bytes: Buffer): Generator<Buffer, void, undefined> {
  for (let at = 0; at < bytes.length;) {
    const end = at + PIECE < bytes.length ? betweenCharacters(bytes, at + PIECE) : bytes.length;
    yield bytes.subarray(at, end);
    at = end;
  }
}

/** Returns the last place up to `end` before which no character can be cut in two. */
const betweenCharacters = (bytes: Buffer, end: number): number => {
  for (let at = end; at > end - LONGEST_CHARACTER; at -= 1)
    if (!isContinuation(bytes[at] ?? 0)) return at;
  return end;
};

const isContinuation = (byte: number): boolean => (byte & 0xc0) === 0x80;
