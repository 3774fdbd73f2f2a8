import { OutcomeUnknown } from '../sandbox-driver.ts';
import { ByteQueue } from '../../lib/streams/byte-queue.ts';

export type ProcessPiece =
  | { readonly kind: 'begins'; readonly at: number }
  | {
      readonly kind: 'bytes';
      readonly stream: 'stdout' | 'stderr';
      readonly at: number;
      readonly bytes: Buffer;
    }
  | { readonly kind: 'record'; readonly record: Buffer }
  | { readonly kind: 'wants'; readonly at: number };

const HEAD_BYTES = 13;
const [BEGINS, STDOUT, STDERR, RECORD, WANTS] = ['a', 'o', 'e', 'r', 'm'].map((kind) =>
  kind.charCodeAt(0),
);
const LONGEST_OUTPUT = 64 << 10;
/** Includes the process's arguments. */
const LONGEST_RECORD = 2 << 20;

/** Accepts pieces of any size. Code in the sandbox can forge them, so no length is trusted. */
export class PieceReader {
  readonly #gathered = new ByteQueue();
  #bytes = 0;
  #kind: number | undefined;
  #at = 0;
  #left = 0;

  *push(bytes: Buffer): Iterable<ProcessPiece> {
    let rest = bytes;
    while (rest.length > 0) {
      const wanted = this.#kind === undefined ? HEAD_BYTES - this.#bytes : this.#left;
      const part = rest.subarray(0, wanted);
      rest = rest.subarray(part.length);
      if (this.#kind === STDOUT || this.#kind === STDERR) yield this.#pass(part);
      else yield* this.#gather(part);
    }
  }

  #pass(bytes: Buffer): ProcessPiece {
    const stream = this.#kind === STDOUT ? 'stdout' : 'stderr';
    const at = this.#at;
    this.#at += bytes.length;
    this.#left -= bytes.length;
    if (this.#left === 0) this.#kind = undefined;
    return { kind: 'bytes', stream, at, bytes };
  }

  *#gather(part: Buffer): Iterable<ProcessPiece> {
    this.#gathered.push(part);
    this.#bytes += part.length;
    if (this.#kind !== undefined) {
      this.#left -= part.length;
      if (this.#left === 0) yield { kind: 'record', record: this.#taken() };
    } else if (this.#bytes === HEAD_BYTES) yield* this.#begin(this.#taken());
  }

  *#begin(head: Buffer): Iterable<ProcessPiece> {
    const kind = head.readUInt8(0);
    const at = Number(head.readBigUInt64BE(1));
    const length = head.readUInt32BE(9);
    const isEmpty = kind === BEGINS || kind === WANTS;
    const most = kind === RECORD ? LONGEST_RECORD : isEmpty ? 0 : LONGEST_OUTPUT;
    const isKnown = [BEGINS, STDOUT, STDERR, RECORD, WANTS].includes(kind);
    const isPiece = isEmpty || length > 0;
    if (!isKnown || !isPiece || length > most || !Number.isSafeInteger(at + length))
      throw new OutcomeUnknown("the sandbox's report of its processes cannot be read");
    if (isEmpty) return yield { kind: kind === BEGINS ? 'begins' : 'wants', at };
    this.#kind = kind;
    this.#at = at;
    this.#left = length;
  }

  #taken(): Buffer {
    this.#bytes = 0;
    this.#kind = undefined;
    return this.#gathered.takeAll();
  }
}
