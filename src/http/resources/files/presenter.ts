import { isUtf8 } from 'node:buffer';
import type {
  FileEvent,
  FileKind,
  FilePage,
  FileStat,
  FileVersion,
} from '../../../contracts/files.ts';
import type { ServerEvent } from '../../reply/event-streams.ts';
import { timestampOf } from '../../corridor/common-schema.ts';
import type { FileEventWire, FileInfoWire, FileListWire } from './schema.ts';

const KINDS: Readonly<Record<FileKind, FileInfoWire['kind']>> = {
  file: 'File',
  folder: 'Folder',
  link: 'Link',
  other: 'Other',
};

export const fileTag = ({ size, mtimeNs }: FileVersion): string =>
  `"${size.toString(16)}-${BigInt.asUintN(64, mtimeNs).toString(16)}"`;

/** A foreign tag matches nothing. */
export const versionsOf = (header: string): readonly FileVersion[] | 'any' => {
  if (header.trim() === '*') return 'any';
  return [...header.matchAll(/"([0-9a-f]{1,14})-([0-9a-f]{1,16})"/g)].map(
    ([, size = '', time = '']) => ({
      size: Number.parseInt(size, 16),
      mtimeNs: BigInt.asIntN(64, BigInt(`0x${time}`)),
    }),
  );
};

export const presentFile = (path: Buffer, stat: FileStat): FileInfoWire =>
  withStat(textOf(path), stat);

/** Presents up to 10,000 entries without copies, because all other requests wait for it. */
export const presentFiles = (folder: Buffer, { entries, next }: FilePage): FileListWire => {
  const above = folder.at(-1) === SLASH ? folder : Buffer.concat([folder, Buffer.from([SLASH])]);
  const text = isUtf8(above) ? above.toString() : undefined;
  const pathOf = (path: Buffer): PathWire =>
    text !== undefined && isUtf8(path)
      ? { path: text + path.toString() }
      : textOf(Buffer.concat([above, path]));
  return { items: entries.map(({ path, stat }) => withStat(pathOf(path), stat)), nextCursor: next };
};

type PathWire = Pick<FileInfoWire, 'path' | 'base64'>;

/** Mutates `info`, which the caller must own. */
const withStat = (info: PathWire, stat: FileStat): FileInfoWire => {
  const { kind, size, mode, uid, gid, mtimeNs, target } = stat;
  const shown: FileInfoWire = Object.assign(info, {
    kind: KINDS[kind],
    size,
    mode: mode.toString(8).padStart(4, '0'),
    uid,
    gid,
    modifiedAt: timestampOf(boundedMs(mtimeNs)),
  });
  if (kind === 'file') shown.etag = fileTag(stat);
  return target ? Object.assign(shown, targetOf(target)) : shown;
};

export async function* presentFileEvents(
  batches: AsyncIterable<readonly FileEvent[]>,
): AsyncGenerator<ServerEvent, void, undefined> {
  for await (const batch of batches)
    for (const { type, path, isFolder } of batch) {
      const data: FileEventWire = { type, ...textOf(path), isFolder };
      yield { event: type, data };
    }
}

const SLASH = 0x2f;

const textOf = (path: Buffer): { readonly path: string; readonly base64?: true } =>
  isUtf8(path) ? { path: path.toString() } : { path: path.toString('base64'), base64: true };

const targetOf = (target: Buffer): { readonly target: string; readonly targetBase64?: true } =>
  isUtf8(target)
    ? { target: target.toString() }
    : { target: target.toString('base64'), targetBase64: true };

/** A sandbox can set any time, so years are clamped to four digits. */
const boundedMs = (ns: bigint): number => {
  const ms = Number(ns / 1_000_000n);
  return Math.min(Math.max(ms, -62_135_596_800_000), 253_402_300_799_999);
};
