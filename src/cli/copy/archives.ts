import type { Stats } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { basename, posix, resolve } from 'node:path';
import { Readable, type Writable } from 'node:stream';
import type { LeftOut } from './left-out.ts';
import { type Source, unusable } from '../common/local-files.ts';

const NO_FILE = 'is neither a file, a folder nor a link';

/** Archives links as links. */
export const folderSource = (path: string, leftOut: LeftOut): Source => ({
  bytes: archiveOf(path, leftOut),
  name: basename(resolve(path)),
  size: undefined,
  mode: undefined,
});

async function* archiveOf(path: string, leftOut: LeftOut): AsyncGenerator<Buffer, void, undefined> {
  const { create } = await import('tar');
  const filter = (name: string, found: Stats | object): boolean => {
    if (!('isFile' in found) || found.isFile() || found.isDirectory() || found.isSymbolicLink())
      return true;
    leftOut.add(posix.normalize(name), NO_FILE);
    return false;
  };
  yield* create({ cwd: path, portable: true, filter }, ['.']) as AsyncIterable<Buffer>;
}

/**
 * Unpacks an archive from a sandbox, which may be hostile: writes nothing outside the folder, not
 * even through links, and creates no link that leads out of it. Skips devices, owners and setuid
 * bits.
 */
export const unpackHere = async (
  folder: string,
  bytes: AsyncIterable<Buffer>,
  leftOut: LeftOut,
): Promise<void> => {
  const { extract } = await import('tar');
  await mkdir(folder, { recursive: true }).catch((error: unknown) => {
    throw unusable(folder, error);
  });
  let failure: Error | undefined;
  const target = extract({
    cwd: folder,
    preserveOwner: false,
    strict: false,
    maxMetaEntrySize: 1_048_576,
    filter: (path, entry) => {
      if (!('type' in entry)) return false;
      const why = whyLeftOut(path, entry);
      if (why !== undefined) leftOut.add(posix.normalize(path), why);
      if (entry.mode !== undefined) entry.mode &= 0o777;
      return why === undefined;
    },
    onwarn: (code, message, data) => {
      if (code !== 'TAR_ENTRY_ERROR') return;
      const path = pathOf(data);
      // The system's error, such as a full disk, and not the archive's.
      if (data instanceof Error && /^E[A-Z]+$/.test(String(data.code)))
        failure ??= unusable(posix.join(folder, path), data);
      else
        leftOut.add(
          path,
          /symbolic/.test(message) ? 'is behind a link' : 'leads out of the folder',
        );
    },
  });
  // `pipeline` would wait for ever if the last entries are left out.
  const source = Readable.from(bytes);
  await new Promise<void>((done, reject) => {
    source.once('error', reject);
    target.once('error', reject).once('finish', () => done());
    source.pipe(target as unknown as Writable);
  });
  if (failure !== undefined) throw failure;
};

interface Entry {
  readonly type: string;
  readonly linkpath?: string;
}

const whyLeftOut = (path: string, { type, linkpath = '' }: Entry): string | undefined => {
  if (!KEPT.has(type)) return NO_FILE;
  return type === 'SymbolicLink' && leadsOut(path, linkpath)
    ? `is a link that leads out of the folder, to ${linkpath}`
    : undefined;
};

/** A `..` behind a name climbs from wherever another link leads. */
const climbsBehindName = (linkpath: string): boolean => {
  const parts = linkpath.split('/').filter((part) => part !== '' && part !== '.');
  const first = parts.findIndex((part) => part !== '..');
  return first >= 0 && parts.includes('..', first);
};

const leadsOut = (path: string, linkpath: string): boolean =>
  posix.isAbsolute(linkpath) ||
  climbsBehindName(linkpath) ||
  /^\.\.(\/|$)/.test(posix.normalize(posix.join(posix.dirname(path), linkpath)));

const KEPT: ReadonlySet<string> = new Set([
  'File',
  'OldFile',
  'ContiguousFile',
  'Directory',
  'SymbolicLink',
  'Link',
]);

const pathOf = (data: unknown): string => {
  const entry =
    typeof data === 'object' && data !== null && 'entry' in data ? data.entry : undefined;
  return typeof entry === 'object' && entry !== null && 'path' in entry
    ? posix.normalize(String(entry.path))
    : 'an entry';
};
