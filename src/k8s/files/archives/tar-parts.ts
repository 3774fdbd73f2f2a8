import {
  BLOCK,
  paddingOf,
  readHeader,
  TarDamaged,
  type TarEntry,
  type TarHeader,
} from './tar-header.ts';

/** An entry, or a piece of the content of the entry before it. */
export type TarPart = { readonly entry: TarEntry } | { readonly content: Buffer };

/** Bytes of what may be said of one entry beyond its header. */
const MOST_RECORDS = 1 << 20;
/** More than any file has, and what a header can say. */
const MOST_BYTES = 2 ** 47;
/** With its end, as the kernel has it. */
const PATH_BYTES = 4_096;
const CUT_SHORT = 'the archive is cut short';

/**
 * Reads an archive (ustar, pax or GNU) as it goes by, with what it reads piece by piece and never
 * more than that in memory. Throws TarDamaged where it is none or is cut short. What follows its
 * end is read and thrown away.
 */
export async function* tarParts(
  source: AsyncIterable<Buffer>,
): AsyncGenerator<TarPart, void, undefined> {
  const reader = new BlockReader(source);
  let said: Said = {};
  for (;;) {
    const block = await reader.exactly(BLOCK);
    if (block.every((byte) => byte === 0)) break;
    const header = readHeader(block);
    if (isExtension(header)) {
      said = { ...said, ...(await readExtension(reader, header)) };
      continue;
    }
    const entry = entryOf(header, said);
    said = {};
    yield { entry };
    for (let left = entry.size; left > 0;) {
      const content = await reader.upTo(left);
      left -= content.length;
      yield { content };
    }
    await reader.exactly(paddingOf(entry.size));
  }
  await reader.drain();
}

/** Holds what records say of the entry that follows. */
interface Said {
  readonly name?: string;
  readonly target?: string;
  readonly size?: number;
}

const isExtension = ({ type }: TarHeader): boolean => ['x', 'g', 'L', 'K'].includes(type);

const readExtension = async (reader: BlockReader, { type, size }: TarHeader): Promise<Said> => {
  if (size > MOST_RECORDS) throw new TarDamaged("an entry's records are too long");
  const text = (await reader.exactly(size)).toString('latin1');
  await reader.exactly(paddingOf(size));
  if (type === 'L') return { name: asPath(text.replace(/\0[^]*/, '')) };
  if (type === 'K') return { target: asPath(text.replace(/\0[^]*/, '')) };
  return type === 'x' ? readRecords(text) : {};
};

const readRecords = (text: string): Said => {
  let said: Said = {};
  for (let at = 0; at < text.length;) {
    const length = Number(/^\d{1,7}(?= )/.exec(text.slice(at, at + 8))?.[0] ?? 0);
    const record = text.slice(at, at + length);
    if (length === 0 || record.length < length || !record.endsWith('\n')) throw malformed();
    at += length;
    const [, keyword = '', value = ''] = /^\d+ ([^=]*)=([^]*)\n$/.exec(record) ?? [];
    if (keyword === '' || keyword.startsWith('GNU.sparse.')) throw malformed();
    if (keyword === 'path') said = { ...said, name: asPath(value) };
    if (keyword === 'linkpath') said = { ...said, target: asPath(value) };
    if (keyword === 'size') {
      if (!/^\d{1,15}$/.test(value)) throw malformed();
      said = { ...said, size: Number(value) };
    }
  }
  return said;
};

const malformed = (): TarDamaged =>
  new TarDamaged("an entry's records are malformed, or of a kind that is not read");

const asPath = (text: string): string => {
  if (text.length >= PATH_BYTES || text.includes('\0')) throw malformed();
  return text;
};

/** Links have no content, whatever their size says. */
const entryOf = ({ type: _type, ...header }: TarHeader, said: Said): TarEntry => {
  const entry = { ...header, ...said };
  if (entry.size > MOST_BYTES) throw new TarDamaged('an entry has a size that is none');
  const isLink = entry.kind === 'link' || entry.kind === 'hard-link';
  if (isLink) return { ...entry, size: 0 };
  return { ...entry, target: '' };
};

/** Takes a stream apart; each call throws TarDamaged where it ends too early. */
class BlockReader {
  readonly #pieces: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#pieces = source[Symbol.asyncIterator]();
  }

  async exactly(size: number): Promise<Buffer> {
    if (size <= this.#rest.length) return this.#taken(size);
    const pieces: Buffer[] = [];
    for (let left = size; left > 0;) {
      const piece = await this.upTo(left);
      pieces.push(piece);
      left -= piece.length;
    }
    return Buffer.concat(pieces);
  }

  /** At least one byte. */
  async upTo(size: number): Promise<Buffer> {
    while (this.#rest.length === 0) {
      const { done, value } = await this.#pieces.next();
      if (done === true) throw new TarDamaged(CUT_SHORT);
      this.#rest = value;
    }
    return this.#taken(Math.min(size, this.#rest.length));
  }

  async drain(): Promise<void> {
    while ((await this.#pieces.next()).done !== true);
  }

  #taken(size: number): Buffer {
    const taken = this.#rest.subarray(0, size);
    this.#rest = this.#rest.subarray(size);
    return taken;
  }
}
