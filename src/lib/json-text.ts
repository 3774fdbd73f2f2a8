import { isUtf8 } from 'node:buffer';

/** Per conversion. */
const PIECE = 32 << 10;
const LONGEST_CHARACTER = 4;

/** For each character below 128. */
const ESCAPES = Uint8Array.from({ length: 256 }, (_, code) =>
  code < 128 ? JSON.stringify(String.fromCharCode(code)).length - 3 : 0,
);

/**
 * Bytes in a JSON string, or a few more if the text is cut within a character. Does not build the
 * JSON, because tenants print megabytes.
 */
export const jsonLength = (bytes: Buffer): number => {
  let length = isUtf8(bytes) ? bytes.length : lengthMended(bytes);
  for (let at = 0; at < bytes.length; at += 1) length += ESCAPES[bytes[at] ?? 0] ?? 0;
  return length;
};

/** After U+FFFD replaces invalid UTF-8. */
const lengthMended = (bytes: Buffer): number => {
  let length = 0;
  for (const piece of piecesOf(bytes)) length += Buffer.byteLength(piece.toString('utf8'));
  return length;
};

/**
 * Written as a JSON value without one large string. Invalid UTF-8 becomes U+FFFD. `cut`: omits an
 * incomplete last character.
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

  /** As `JSON.stringify` would make it, in pieces of at most some hundred KB. */
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

/** Up to `end`, without splitting a character. */
const betweenCharacters = (bytes: Buffer, end: number): number => {
  for (let at = end; at > end - LONGEST_CHARACTER; at -= 1)
    if (!isContinuation(bytes[at] ?? 0)) return at;
  return end;
};

const isContinuation = (byte: number): boolean => (byte & 0xc0) === 0x80;
