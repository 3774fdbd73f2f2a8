/** Says what an archive's entry is; `other` stands for all that is no file, folder or link. */
export type TarKind = 'file' | 'folder' | 'link' | 'hard-link' | 'other';

/** Says what stands of one entry in an archive. Names are bytes, as latin1. */
export interface TarEntry {
  readonly kind: TarKind;
  readonly name: string;
  /** Tells what a link says, or the entry that a hard link is to; else empty. */
  readonly target: string;
  /** Bytes of content that follow. */
  readonly size: number;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** Whole seconds since the epoch. */
  readonly mtime: number;
}

/** A header as it stands in an archive: an entry, or records about the next one. */
export interface TarHeader extends TarEntry {
  readonly type: string;
}

/** Says why bytes are no archive. */
export class TarDamaged extends Error {
  override readonly name = 'TarDamaged';
}

export const BLOCK = 512;
const NAME_BYTES = 100;
const PREFIX = [345, 500] as const;
const CHECKSUM = [148, 156] as const;
/** Largest number that eleven octal digits say. */
const MOST_OCTAL = 8 ** 11 - 1;
/** Largest number that is written in binary. */
const MOST_BINARY = 2 ** 48 - 1;

const KINDS: Readonly<Record<string, TarKind>> = {
  '0': 'file',
  '\0': 'file',
  '7': 'file',
  '1': 'hard-link',
  '2': 'link',
  '5': 'folder',
};

/** Reads a header block. Throws TarDamaged where it is none. */
export const readHeader = (block: Buffer): TarHeader => {
  if (numberAt(block, ...CHECKSUM) !== checksumOf(block))
    throw new TarDamaged('it is no tar archive, or damaged');
  const type = block.toString('latin1', 156, 157);
  const isPrefixed = block.toString('latin1', 257, 262) === 'ustar' && block[257 + 5] === 0;
  const prefix = isPrefixed ? textAt(block, ...PREFIX) : '';
  const name = textAt(block, 0, NAME_BYTES);
  return {
    type,
    kind: KINDS[type] ?? 'other',
    name: prefix === '' ? name : `${prefix}/${name}`,
    target: textAt(block, 157, 257),
    size: numberAt(block, 124, 136),
    mode: numberAt(block, 100, 108) & 0o7777,
    uid: numberAt(block, 108, 116),
    gid: numberAt(block, 116, 124),
    mtime: numberAt(block, 136, 148),
  };
};

const textAt = (block: Buffer, start: number, end: number): string => {
  const nul = block.indexOf(0, start);
  return block.toString('latin1', start, nul < 0 ? end : Math.min(nul, end));
};

const numberAt = (block: Buffer, start: number, end: number): number => {
  if (block[start] === 0x80) {
    const value = [...block.subarray(start + 1, end)].reduce((sum, byte) => sum * 256 + byte, 0);
    if (!Number.isSafeInteger(value)) throw new TarDamaged('an entry has a size that is none');
    return value;
  }
  const text = textAt(block, start, end).trim();
  if (!/^[0-7]*$/.test(text)) throw new TarDamaged('it is no tar archive, or damaged');
  return text === '' ? 0 : Number.parseInt(text, 8);
};

const checksumOf = (block: Buffer): number => {
  let sum = 0;
  for (let at = 0; at < BLOCK; at += 1)
    sum += at >= CHECKSUM[0] && at < CHECKSUM[1] ? 0x20 : (block[at] ?? 0);
  return sum;
};

/**
 * Says where stands what an entry's header has no room for: in records of POSIX (`pax`), or in
 * entries of GNU tar, which busybox reads as well.
 */
export type LongNames = 'pax' | 'gnu';

/** Writes an entry's header, and before it what that has no room for. */
export const writeHeader = (entry: TarEntry, long: LongNames): Buffer => {
  const { name, target, size } = entry;
  const before =
    long === 'pax'
      ? paxRecords(entry)
      : [
          ...(isLong(name) ? gnuName('L', name) : []),
          ...(isLong(target) ? gnuName('K', target) : []),
        ];
  const type = { file: '0', folder: '5', link: '2', 'hard-link': '1', other: '0' }[entry.kind];
  const plain = { ...entry, type, size: long === 'pax' ? Math.min(size, MOST_OCTAL) : size };
  return Buffer.concat([...before, headerBlock(plain)]);
};

/** Returns what an archive ends with. */
export const archiveEnd = (): Buffer => Buffer.alloc(2 * BLOCK);

/** Zeros that bring content of so many bytes to whole blocks. */
export const paddingOf = (size: number): number => (BLOCK - (size % BLOCK)) % BLOCK;

const isLong = (text: string): boolean => text.length > NAME_BYTES;

const paxRecords = ({ name, target, size }: TarEntry): readonly Buffer[] => {
  const records = [
    ...(isLong(name) ? [paxRecord('path', name)] : []),
    ...(isLong(target) ? [paxRecord('linkpath', target)] : []),
    ...(size > MOST_OCTAL ? [paxRecord('size', String(size))] : []),
  ].join('');
  return records === '' ? [] : extension('x', '././@PaxHeader', records);
};

/** A record's length counts its own digits. */
const paxRecord = (keyword: string, value: string): string => {
  const body = ` ${keyword}=${value}\n`;
  let length = body.length;
  while (String(length).length + body.length !== length)
    length = String(length).length + body.length;
  return `${length}${body}`;
};

const gnuName = (type: string, text: string): readonly Buffer[] =>
  extension(type, '././@LongLink', `${text}\0`);

const extension = (type: string, name: string, text: string): readonly Buffer[] => [
  headerBlock({
    ...{ type, name, target: '', size: text.length },
    ...{ mode: 0o644, uid: 0, gid: 0, mtime: 0 },
  }),
  Buffer.from(text, 'latin1'),
  Buffer.alloc(paddingOf(text.length)),
];

const headerBlock = (header: Omit<TarHeader, 'kind'>): Buffer => {
  const block = Buffer.alloc(BLOCK);
  block.write(header.name.slice(0, NAME_BYTES), 0, 'latin1');
  putNumber(block, { start: 100, end: 108 }, header.mode);
  putNumber(block, { start: 108, end: 116 }, header.uid);
  putNumber(block, { start: 116, end: 124 }, header.gid);
  putNumber(block, { start: 124, end: 136 }, header.size);
  putNumber(block, { start: 136, end: 148 }, header.mtime);
  block.write(header.type, 156, 'latin1');
  block.write(header.target.slice(0, NAME_BYTES), 157, 'latin1');
  block.write('ustar\x0000', 257, 'latin1');
  block.write(`${checksumOf(block).toString(8).padStart(6, '0')}\0 `, CHECKSUM[0], 'latin1');
  return block;
};

interface Field {
  readonly start: number;
  readonly end: number;
}

/** In octal, or where that has no room in binary. */
const putNumber = (block: Buffer, { start, end }: Field, value: number): void => {
  const digits = value.toString(8);
  if (digits.length < end - start) {
    block.write(digits.padStart(end - start - 1, '0'), start, 'latin1');
    return;
  }
  block[start] = 0x80;
  block.writeUIntBE(Math.min(value, MOST_BINARY), end - 6, 6);
};
