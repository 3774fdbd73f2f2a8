import { ByteQueue } from '../../lib/streams/byte-queue.ts';
import type { ProcessOutput } from '../../model/process.ts';

/**
 * Says that what follows is no output as `start.sh` writes it: cut short for want of room, or
 * spoilt.
 */
export class FramesSpoilt extends Error {
  override readonly name = 'FramesSpoilt';
}

export type OutputFrame =
  | Exclude<ProcessOutput, { kind: 'end' }>
  /** It was removed. */
  | { readonly kind: 'gone' }
  /** Nothing more comes; `line` is the record. */
  | { readonly kind: 'ended'; readonly line: string };

const NEWLINE = 10;
/** Bounds a head in bytes; a record is longer. */
const LONGEST_HEAD = 64;
const LONGEST_RECORD = 1 << 20;
const LONGEST_PIECE = 64 << 10;
/** Bytes in which nothing new is; a segment that is read to a position in it has fewer. */
const MOST_IN_VAIN = 2 << 20;
const HEAD = /^([soe]) (\d{1,15}) (\d{1,15})$/;
const AT = /^at (\d{1,15})$/;

/**
 * Reads what `output.sh` prints, however it is cut, from a position on. What lies before that is
 * skipped; what is missing after it was dropped.
 */
export class OutputFrames {
  /** How far the output was read: bytes of both streams since the process began. */
  position: number | undefined;
  readonly #head = new ByteQueue();
  #headBytes = 0;
  #stream: 'stdout' | 'stderr' = 'stdout';
  /** Where the frame's next byte is in the output, and how many there are. */
  #at = 0;
  #left = 0;
  #isEnding = false;
  #isPlaced = false;
  #inVain = 0;

  /** Absent: where the script says. It says so too where less than the position was printed. */
  constructor(position?: number) {
    this.position = position;
  }

  /** Throws FramesSpoilt. */
  *push(bytes: Buffer): Iterable<OutputFrame> {
    this.#inVain += bytes.length;
    if (this.#inVain > MOST_IN_VAIN) throw new FramesSpoilt('nothing of it is output');
    for (const frame of this.#read(bytes)) {
      this.#inVain = 0;
      yield frame;
    }
  }

  *#read(bytes: Buffer): Iterable<OutputFrame> {
    let rest = bytes;
    while (rest.length > 0) {
      if (this.#left > 0) {
        const part = rest.subarray(0, Math.min(this.#left, LONGEST_PIECE));
        rest = rest.subarray(part.length);
        yield* this.#pass(part);
      } else {
        const end = rest.indexOf(NEWLINE);
        const line = end < 0 ? rest : rest.subarray(0, end);
        this.#head.push(line);
        this.#headBytes += line.length;
        if (this.#headBytes > (this.#isEnding ? LONGEST_RECORD : LONGEST_HEAD))
          throw new FramesSpoilt('a head is too long');
        if (end < 0) return;
        rest = rest.subarray(end + 1);
        const head = this.#head.takeAll().toString('utf8');
        this.#headBytes = 0;
        yield* this.#begin(head);
      }
    }
  }

  *#begin(head: string): Iterable<OutputFrame> {
    if (this.#isEnding) return yield { kind: 'ended', line: head };
    if (head === 'gone') return yield { kind: 'gone' };
    if (head === 'end') {
      this.#isEnding = true;
      return;
    }
    const begins = AT.exec(head)?.[1];
    if (begins !== undefined) {
      if (!this.#isPlaced) this.position = Number(begins);
      this.#isPlaced = true;
      return;
    }
    const [, kind, at, length] = HEAD.exec(head) ?? [];
    if (kind === undefined) throw new FramesSpoilt('this is no head');
    yield* this.#skipTo(Number(at));
    if (kind === 's') return;
    this.#stream = kind === 'o' ? 'stdout' : 'stderr';
    this.#at = Number(at);
    this.#left = Number(length);
  }

  *#skipTo(at: number): Iterable<OutputFrame> {
    const position = this.position ?? 0;
    if (at <= position) return;
    this.position = at;
    yield { kind: 'dropped', bytes: at - position, next: String(at) };
  }

  *#pass(bytes: Buffer): Iterable<OutputFrame> {
    const known = Math.max((this.position ?? 0) - this.#at, 0);
    const fresh = Buffer.from(bytes.subarray(known));
    this.#at += bytes.length;
    this.#left -= bytes.length;
    if (fresh.length === 0) return;
    this.position = this.#at;
    yield { kind: 'bytes', stream: this.#stream, bytes: fresh, next: String(this.#at) };
  }
}
