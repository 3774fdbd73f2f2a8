import { ByteQueue } from '../../lib/streams/byte-queue.ts';

/**
 * SPDY/3.1, as far as a port-forward's client speaks it. Nothing is compressed: the headers that it
 * sends are stored as they are, which is a valid form of what the protocol asks for, and those of
 * answers say nothing.
 */

export type SpdyEvent =
  /** `last`: the stream's other side sends nothing more. */
  | {
      readonly type: 'data';
      readonly stream: number;
      readonly bytes: Buffer;
      readonly last: boolean;
    }
  /** The other side has taken the stream on. */
  | { readonly type: 'reply'; readonly stream: number }
  | { readonly type: 'reset'; readonly stream: number }
  | { readonly type: 'ping'; readonly id: number }
  /** The other side takes no more streams. */
  | { readonly type: 'go-away' };

const CONTROL = 0x8003;
const SYN_STREAM = 1;
const SYN_REPLY = 2;
const RST_STREAM = 3;
const PING = 6;
const GO_AWAY = 7;
const CANCEL = 5;
const LAST = 1;
const HEAD_BYTES = 8;
const LONGEST_CONTROL = 16 << 10;
/** Begins what is compressed with the protocol's dictionary, of which this is the checksum. */
const COMPRESSED_BEGINS = Buffer.from([0x78, 0xbb, 0xe3, 0xc6, 0xa7, 0xc2]);
/** An empty block, at which whoever decompresses gives out what came before. */
const FLUSH = Buffer.from([0, 0, 0, 0xff, 0xff]);

const control = (type: number, body: Buffer): Buffer => {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt16BE(CONTROL, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt32BE(body.length, 4);
  return Buffer.concat([head, body]);
};

const words = (...values: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [at, value] of values.entries()) bytes.writeUInt32BE(value, 4 * at);
  return bytes;
};

const sized = (text: string): Buffer =>
  Buffer.concat([words(Buffer.byteLength(text)), Buffer.from(text)]);

/**
 * Begins a stream. `first`: of all that this side begins on the link. Streams' numbers are odd and
 * grow; names of headers are in lower case; headers are at most 64 KiB.
 */
export const openStream = (
  stream: number,
  headers: Readonly<Record<string, string>>,
  { first }: { readonly first: boolean },
): Buffer => {
  const entries = Object.entries(headers);
  const block = Buffer.concat([
    words(entries.length),
    ...entries.flatMap(([name, value]) => [sized(name), sized(value)]),
  ]);
  const stored = Buffer.alloc(5);
  stored.writeUInt16LE(block.length, 1);
  stored.writeUInt16LE(~block.length & 0xffff, 3);
  const priority = Buffer.alloc(2);
  return control(
    SYN_STREAM,
    Buffer.concat([
      words(stream, 0),
      priority,
      ...(first ? [COMPRESSED_BEGINS] : []),
      stored,
      block,
      FLUSH,
    ]),
  );
};

export const dataFrame = (stream: number, bytes: Buffer): Buffer =>
  Buffer.concat([words(stream, bytes.length), bytes]);

/** This side sends nothing more on the stream. */
export const endStream = (stream: number): Buffer => {
  const frame = words(stream, 0);
  frame[4] = LAST;
  return frame;
};

/** Nobody wants the stream any more. */
export const resetStream = (stream: number): Buffer => control(RST_STREAM, words(stream, CANCEL));

/** Odd ids are this side's, which the other answers with the same. */
export const pingFrame = (id: number): Buffer => control(PING, words(id));

/**
 * Parts what comes on a link into frames, however it is cut. Bytes of streams are passed on as they
 * come.
 */
export class SpdyReader {
  readonly #heard: (event: SpdyEvent) => void;
  readonly #head = new ByteQueue();
  #headBytes = 0;
  /** Bytes of the head, as far as is known: a control frame says its own. */
  #headSize = HEAD_BYTES;
  #stream = 0;
  #left = 0;
  #last = false;

  constructor(heard: (event: SpdyEvent) => void) {
    this.#heard = heard;
  }

  /** Throws at what is no SPDY; then it must be given nothing more. */
  push(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0) rest = this.#left > 0 ? this.#passData(rest) : this.#takeHead(rest);
  }

  #passData(bytes: Buffer): Buffer {
    const part = bytes.subarray(0, this.#left);
    this.#left -= part.length;
    this.#heard({
      type: 'data',
      stream: this.#stream,
      bytes: part,
      last: this.#last && this.#left === 0,
    });
    return bytes.subarray(part.length);
  }

  #takeHead(bytes: Buffer): Buffer {
    const part = bytes.subarray(0, this.#headSize - this.#headBytes);
    const rest = bytes.subarray(part.length);
    this.#head.push(part);
    this.#headBytes += part.length;
    if (this.#headBytes < this.#headSize) return rest;
    const head = this.#head.takeAll();
    this.#headSize = sizeOf(head);
    if (this.#headSize > head.length) {
      this.#head.push(head);
      return rest;
    }
    this.#headBytes = 0;
    this.#headSize = HEAD_BYTES;
    if (isControl(head)) this.#hearControl(head);
    else this.#beginData(head);
    return rest;
  }

  #beginData(head: Buffer): void {
    this.#stream = head.readUInt32BE(0);
    this.#left = head.readUIntBE(5, 3);
    this.#last = (head.readUInt8(4) & LAST) !== 0;
    if (this.#left === 0)
      this.#heard({
        type: 'data',
        stream: this.#stream,
        bytes: head.subarray(0, 0),
        last: this.#last,
      });
  }

  #hearControl(frame: Buffer): void {
    const type = frame.readUInt16BE(2);
    if (type === GO_AWAY) return this.#heard({ type: 'go-away' });
    // settings and windows are not heeded by runtimes either
    if (type !== SYN_REPLY && type !== RST_STREAM && type !== PING) return;
    if (frame.length < HEAD_BYTES + 4) throw new Error('a frame of the port-forward is too short');
    const id = frame.readUInt32BE(HEAD_BYTES);
    if (type === PING) this.#heard({ type: 'ping', id });
    else this.#heard({ type: type === SYN_REPLY ? 'reply' : 'reset', stream: id });
  }
}

const isControl = (head: Buffer): boolean => head.readUInt8(0) >= 0x80;

/**
 * Bytes of a frame as far as they are read at once: a control frame as a whole, of a data frame its
 * head alone.
 */
const sizeOf = (head: Buffer): number => {
  if (!isControl(head)) return HEAD_BYTES;
  const length = head.readUIntBE(5, 3);
  if (head.readUInt16BE(0) !== CONTROL || length > LONGEST_CONTROL)
    throw new Error('what comes on the port-forward is no SPDY');
  return HEAD_BYTES + length;
};
