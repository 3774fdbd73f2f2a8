import type { FileEntry, FileEvent, FileKind, FileStat } from '../files.ts';
import { OutcomeUnknown } from '../sandbox-driver.ts';
import { ByteQueue } from '../../lib/streams/byte-queue.ts';

/** Kind, mode, uid, gid, size and modification time, before the path. */
const FIXED_BYTES = 29;
/** Agents of earlier builds, which upgrades keep, never send it. */
const WITH_METADATA = 'F';
const KINDS: Readonly<Record<string, FileKind>> = {
  f: 'file',
  [WITH_METADATA]: 'file',
  d: 'folder',
  l: 'link',
};

const NOTHING = Buffer.alloc(0);
const METADATA_BYTES = 4_096;

export class StatReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get atEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  entry(): FileEntry {
    this.#need(FIXED_BYTES);
    const bytes = this.#bytes;
    const at = this.#at;
    this.#at += FIXED_BYTES;
    const path = this.#text();
    const target = this.#text();
    const letter = String.fromCharCode(bytes.readUInt8(at));
    const metadata = letter === WITH_METADATA ? metadataIn(this.#text()) : undefined;
    const kind = KINDS[letter] ?? 'other';
    const stat = {
      kind,
      mode: bytes.readUInt32BE(at + 1),
      uid: bytes.readUInt32BE(at + 5),
      gid: bytes.readUInt32BE(at + 9),
      size: Number(bytes.readBigUInt64BE(at + 13)),
      mtimeNs: bytes.readBigInt64BE(at + 21),
    };
    if (kind === 'link') return { path, stat: { ...stat, target } };
    return { path, stat: metadata ? { ...stat, metadata } : stat };
  }

  stat(): FileStat {
    return this.entry().stat;
  }

  number(): number {
    this.#need(8);
    this.#at += 8;
    return Number(this.#bytes.readBigUInt64BE(this.#at - 8));
  }

  flag(): boolean {
    this.#need(1);
    this.#at += 1;
    return this.#bytes.readUInt8(this.#at - 1) !== 0;
  }

  #text(): Buffer {
    this.#need(2);
    const length = this.#bytes.readUInt16BE(this.#at);
    this.#at += 2;
    if (length === 0) return NOTHING;
    this.#need(length);
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  #need(size: number): void {
    if (this.#at + size > this.#bytes.length) throw strange();
  }
}

/** Keys and values alternately, each with a NUL. */
const metadataIn = (bytes: Buffer): FileStat['metadata'] => {
  if (bytes.length === 0) return undefined;
  if (bytes.length > METADATA_BYTES) throw strange();
  const texts = bytes.toString('latin1').split('\0');
  const pairs: [string, string][] = [];
  for (let at = 0; at + 1 < texts.length; at += 2)
    pairs.push([texts[at] ?? '', texts[at + 1] ?? '']);
  return Object.fromEntries(pairs);
};

export const strange = (): OutcomeUnknown =>
  new OutcomeUnknown('the agent sent an unexpected answer');

const EVENT_TYPES: Readonly<Record<string, FileEvent['type']>> = {
  c: 'created',
  m: 'changed',
  r: 'removed',
  a: 'attributes',
  o: 'overflow',
  g: 'gone',
};
const EVENT_HEAD = 4;

/** Accepts pieces of any size. */
export class EventReader {
  readonly #rest = new ByteQueue();
  #missing = EVENT_HEAD;

  feed(chunk: Buffer): readonly FileEvent[] {
    const events: FileEvent[] = [];
    this.#rest.push(chunk);
    this.#missing -= chunk.length;
    if (this.#missing > 0) return events;
    let bytes = this.#rest.takeAll();
    while (bytes.length >= EVENT_HEAD) {
      const end = EVENT_HEAD + bytes.readUInt16BE(2);
      if (bytes.length < end) break;
      const type = EVENT_TYPES[String.fromCharCode(bytes.readUInt8(0))];
      if (type === undefined) throw strange();
      events.push({
        type,
        isFolder: bytes.readUInt8(1) !== 0,
        path: Buffer.from(bytes.subarray(EVENT_HEAD, end)),
      });
      bytes = bytes.subarray(end);
    }
    this.#rest.push(bytes);
    const needed = bytes.length < EVENT_HEAD ? EVENT_HEAD : EVENT_HEAD + bytes.readUInt16BE(2);
    this.#missing = needed - bytes.length;
    return events;
  }
}
