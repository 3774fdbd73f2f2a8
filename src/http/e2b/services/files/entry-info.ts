import { posix } from 'node:path';
import { create, toJsonString, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { FileKind, FileStat } from '../../../../contracts/files.ts';
import { jsonLength } from '../../../../lib/json-text.ts';
import { Slices } from '../../../../lib/slices.ts';
import { EntryInfoSchema, FileType } from '../generated/filesystem.ts';

export type EntryInit = MessageInitShape<typeof EntryInfoSchema>;

const TYPES: Readonly<Record<FileKind, FileType>> = {
  file: FileType.FILE,
  folder: FileType.DIRECTORY,
  link: FileType.SYMLINK,
  other: FileType.UNSPECIFIED,
};
const LETTERS: Readonly<Record<FileKind, string>> = {
  file: '-',
  folder: 'd',
  link: 'l',
  other: '?',
};

export const entryInfo = (path: string, stat: FileStat, leadsTo?: FileKind): EntryInit => ({
  name: posix.basename(path),
  type: TYPES[leadsTo ?? stat.kind],
  path,
  size: BigInt(stat.size),
  mode: stat.mode,
  permissions: permissionsOf(stat),
  owner: userOf(stat.uid),
  group: userOf(stat.gid),
  modifiedTime: timestampFromMs(boundedMs(stat.mtimeNs)),
  symlinkTarget: stat.target
    ? posix.resolve(posix.dirname(path), stat.target.toString('utf8'))
    : undefined,
  metadata: stat.metadata,
});

const FIELD_BYTES = 256;

/** Time in ms between turns of the event loop. */
export const SLICE_MS = 4;

export const bytesOf = async (entries: readonly EntryInit[]): Promise<number> => {
  const slices = new Slices(SLICE_MS);
  let sum = 0;
  for (const { name = '', path = '', symlinkTarget = '', metadata } of entries) {
    sum += FIELD_BYTES + jsonBytes(name) + jsonBytes(path) + jsonBytes(symlinkTarget);
    if (metadata) sum += Buffer.byteLength(JSON.stringify(metadata));
    if (slices.usedUp) await slices.next();
  }
  return sum;
};

/** Encoding many entries at once would block other calls. */
export async function* entriesAsJson(
  entries: readonly EntryInit[],
): AsyncGenerator<Buffer, void, undefined> {
  const slices = new Slices(SLICE_MS);
  let piece = '{"entries":[';
  let before = '';
  for (const entry of entries) {
    piece += before + toJsonString(EntryInfoSchema, create(EntryInfoSchema, entry));
    before = ',';
    if (!slices.usedUp) continue;
    yield Buffer.from(piece);
    piece = '';
    await slices.next();
  }
  yield Buffer.from(`${piece}]}`);
}

const jsonBytes = (text: string): number => jsonLength(Buffer.from(text));

const permissionsOf = ({ kind, mode }: FileStat): string => {
  const bits = 'rwxrwxrwx'.split('').map((letter, at) => ((mode >> (8 - at)) & 1 ? letter : '-'));
  for (const [bit, at, letter] of SPECIAL)
    if (mode & bit) bits[at] = bits[at] === 'x' ? letter : letter.toUpperCase();
  return LETTERS[kind] + bits.join('');
};

const SPECIAL = [
  [0o4000, 2, 's'],
  [0o2000, 5, 's'],
  [0o1000, 8, 't'],
] as const;

/** Other names depend on the image. */
const userOf = (id: number): string => (id === 0 ? 'root' : String(id));

const boundedMs = (ns: bigint): number =>
  Math.min(Math.max(Number(ns / 1_000_000n), -62_135_596_800_000), 253_402_300_799_999);
