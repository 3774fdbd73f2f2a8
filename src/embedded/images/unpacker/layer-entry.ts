import type { Header } from 'tar-stream';
import { ImageRefused } from './image-refused.ts';

/** Paths are names below the image's root. */
export type LayerEntry =
  | { readonly kind: 'folder'; readonly path: readonly string[] }
  | {
      readonly kind: 'file';
      readonly path: readonly string[];
      readonly size: number;
      readonly executable: boolean;
      readonly modifiedAt: number;
    }
  | { readonly kind: 'link'; readonly path: readonly string[]; readonly target: string }
  | { readonly kind: 'hard-link'; readonly path: readonly string[]; readonly to: readonly string[] }
  /** Hides what lower layers have at the path. */
  | { readonly kind: 'whiteout'; readonly path: readonly string[] }
  /** Hides what lower layers have in the folder. */
  | { readonly kind: 'opaque'; readonly path: readonly string[] }
  | { readonly kind: 'nothing' };

/** With the parent folder's path, below the kernel's limit of 4,096. */
const MAX_PATH_BYTES = 3_072;
const MAX_NAME_BYTES = 255;
const MAX_DEPTH = 128;
const MAX_TARGET_BYTES = 4_095;
const WHITEOUT = '.wh.';
const OPAQUE = '.wh..wh..opq';
/** Used by aufs itself. */
const BOOKKEEPING = '.wh..wh.';

/**
 * The archive may be hostile. Throws ImageRefused for anything but files, folders and links, for
 * names outside the root, sparse files and invalid sizes.
 */
export const layerEntryOf = (header: Header): LayerEntry => {
  const path = pathOf(header.name, 'an entry');
  const shown = shownName(header.name);
  const sparse = Object.keys(paxOf(header)).some((key) => key.startsWith('GNU.sparse.'));
  if (sparse) throw new ImageRefused(`${shown} is a sparse file, which is not supported`);
  const size = sizeOf(header, shown);
  const type: string | null = header.type;
  if (type !== 'file' && type !== 'contiguous-file' && size > 0)
    throw new ImageRefused(`${shown} is not a file but has content`);
  const last = path.at(-1);
  if (last?.startsWith(WHITEOUT)) return whiteoutOf(path, last, size);
  switch (type) {
    case 'directory':
      return { kind: 'folder', path };
    case 'file':
    case 'contiguous-file':
      return {
        kind: 'file',
        path: named(path),
        size,
        executable: (header.mode & 0o111) !== 0,
        modifiedAt: secondsOf(header),
      };
    case 'symlink':
      return { kind: 'link', path: named(path), target: targetOf(header.linkname, path, shown) };
    case 'link':
      return {
        kind: 'hard-link',
        path: named(path),
        to: named(pathOf(header.linkname, `the target of the hard link ${shown}`)),
      };
    case 'character-device':
    case 'block-device':
      throw new ImageRefused(`${shown} is a device`);
    case 'fifo':
      throw new ImageRefused(`${shown} is a named pipe`);
    default:
      throw new ImageRefused(`${shown} has a type that is not supported`);
  }
};

export const shownName = (name: string): string =>
  JSON.stringify(name.length > 120 ? `${name.slice(0, 60)}…${name.slice(-50)}` : name);

const named = (path: readonly string[]): readonly string[] => {
  if (path.length === 0) throw new ImageRefused('the root of the image is not a folder');
  return path;
};

/** The library gives null for an empty link target. */
const pathOf = (name: string | null | undefined, what: string): readonly string[] => {
  if (!name) throw new ImageRefused(`${what} has no name`);
  if (name.startsWith('/'))
    throw new ImageRefused(`${what} has an absolute name: ${shownName(name)}`);
  if (name.includes('\ufffd') || name.includes('\0'))
    throw new ImageRefused(`${what} has a name that is not UTF-8: ${shownName(name)}`);
  if (Buffer.byteLength(name) > MAX_PATH_BYTES)
    throw new ImageRefused(
      `${what} has a name of more than ${MAX_PATH_BYTES} bytes: ${shownName(name)}`,
    );
  const path = name.split('/').filter((part) => part !== '' && part !== '.');
  if (path.includes('..')) throw new ImageRefused(`${what} has a name with ..: ${shownName(name)}`);
  if (path.length > MAX_DEPTH)
    throw new ImageRefused(`${what} lies more than ${MAX_DEPTH} folders deep: ${shownName(name)}`);
  if (path.some((part) => Buffer.byteLength(part) > MAX_NAME_BYTES))
    throw new ImageRefused(
      `${what} has a name of more than ${MAX_NAME_BYTES} bytes: ${shownName(name)}`,
    );
  return path;
};

const sizeOf = (header: Header, shown: string): number => {
  const { size } = header;
  const told = paxOf(header)['size'];
  if (!Number.isSafeInteger(size) || size < 0 || (told !== undefined && !/^\d{1,15}$/.test(told)))
    throw new ImageRefused(`${shown} has an invalid size`);
  return size;
};

/** Parsed by the library. */
const paxOf = ({ pax }: Header): Readonly<Record<string, string>> =>
  (pax ?? {}) as Record<string, string>;

const secondsOf = (header: Header): number => {
  const told = paxOf(header)['mtime'];
  const seconds = told === undefined ? header.mtime.getTime() / 1_000 : Number(told);
  return Number.isFinite(seconds) && seconds >= 0 && seconds < 2 ** 33 ? seconds : 0;
};

/** A target that climbs above the sandbox's root is hostile. */
const targetOf = (target: string, path: readonly string[], shown: string): string => {
  if (!target) throw new ImageRefused(`the link ${shown} has no target`);
  if (Buffer.byteLength(target) > MAX_TARGET_BYTES)
    throw new ImageRefused(`the link ${shown} has a target of more than ${MAX_TARGET_BYTES} bytes`);
  if (target.includes('\ufffd') || target.includes('\0'))
    throw new ImageRefused(`the link ${shown} has a target that is not UTF-8`);
  let depth = target.startsWith('/') ? 0 : path.length - 1;
  for (const part of target.split('/')) {
    if (part === '..') depth -= 1;
    else if (part !== '' && part !== '.') depth += 1;
    if (depth < 0)
      throw new ImageRefused(`the link ${shown} leads out of the image: ${shownName(target)}`);
  }
  return target;
};

const whiteoutOf = (path: readonly string[], last: string, size: number): LayerEntry => {
  const folder = path.slice(0, -1);
  if (size > 0) throw new ImageRefused(`the whiteout ${shownName(path.join('/'))} has content`);
  if (last === OPAQUE) return { kind: 'opaque', path: folder };
  if (last.startsWith(BOOKKEEPING)) return { kind: 'nothing' };
  const hidden = last.slice(WHITEOUT.length);
  if (hidden === '' || hidden === '.' || hidden === '..')
    throw new ImageRefused(`${shownName(path.join('/'))} is a whiteout of an invalid name`);
  return { kind: 'whiteout', path: [...folder, hidden] };
};
