import { invalidArgument } from '../../../../model/refusals.ts';
import { FRAME_HEAD_BYTES } from './frames.ts';

const KIB = 1_024;
const MOST_BYTES: Readonly<Record<string, number>> = {
  Start: 256 * KIB,
  SendInput: 1_024 * KIB,
};
const MOST_BYTES_OF_OTHERS = 64 * KIB;
const MOST_BYTES_OF_MESSAGE = 1_024 * KIB;
/** Twice the largest valid call: 1,024 arguments and 128 variables. */
const MOST_VALUES = 2_304;

export const mostBytesOf = (path: string): number =>
  MOST_BYTES[path.slice(path.lastIndexOf('/') + 1)] ?? MOST_BYTES_OF_OTHERS;

/** Runs before parsing. `isFramed`: each message follows its length. */
export const boundValues = (body: Buffer, isFramed: boolean): void => {
  let left = MOST_VALUES;
  for (const message of isFramed ? messagesOf(body) : [body]) {
    left -= commasIn(message, left);
    if (left < 0) throw invalidArgument('body', `must have at most ${MOST_VALUES} values`);
  }
};

function* messagesOf(body: Buffer): Generator<Buffer, void, undefined> {
  for (let at = 0; at + FRAME_HEAD_BYTES <= body.length;) {
    const from = at + FRAME_HEAD_BYTES;
    at = from + body.readUInt32BE(at + 1);
    yield body.subarray(from, at);
  }
}

/** Each with its head. Yields an incomplete last message unchanged. */
export async function* wholeMessages(
  content: AsyncIterable<Buffer>,
  permit: (message: Buffer) => Promise<void>,
): AsyncGenerator<Buffer, void, undefined> {
  let pieces: Buffer[] = [];
  let size = 0;
  let needed = FRAME_HEAD_BYTES;
  for await (const piece of content) {
    pieces.push(piece);
    size += piece.length;
    while (size >= needed) {
      const held = pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces, size);
      needed = FRAME_HEAD_BYTES + held.readUInt32BE(1);
      if (needed > FRAME_HEAD_BYTES + MOST_BYTES_OF_MESSAGE)
        throw invalidArgument('body', `a message must have at most ${MOST_BYTES_OF_MESSAGE} bytes`);
      pieces = [held];
      if (size < needed) break;
      const message = held.subarray(0, needed);
      await permit(message);
      yield message;
      pieces = [held.subarray(needed)];
      size -= needed;
      needed = FRAME_HEAD_BYTES;
    }
  }
  if (size > 0) yield Buffer.concat(pieces, size);
}

const [QUOTE, COMMA, BACKSLASH] = [0x22, 0x2c, 0x5c];

const commasIn = (json: Buffer, most: number): number => {
  let commas = 0;
  for (let at = 0; at < json.length && commas <= most; at += 1) {
    if (json[at] === COMMA) commas += 1;
    else if (json[at] === QUOTE) at = endOfString(json, at);
  }
  return commas;
};

const endOfString = (json: Buffer, from: number): number => {
  for (let at = json.indexOf(QUOTE, from + 1); at >= 0; at = json.indexOf(QUOTE, at + 1)) {
    let backslashes = 0;
    while (json[at - 1 - backslashes] === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return at;
  }
  return json.length;
};
