import { createReadStream, createWriteStream, type Stats } from 'node:fs';
import { chmod, lstat, mkdir, readdir, readlink, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { create, extract } from 'tar';
import {
  FileRefused,
  type FileEntry,
  type FilePlace,
  type FileProblem,
  type FileStat,
  type SandboxFiles,
} from '../../../src/contracts/files.ts';
import { noFiles } from './nothing-inside.ts';

/**
 * This machine's files instead of a sandbox's, for UTF-8 names. Lists have one page; nothing
 * watches.
 */
export const localFolderFiles = (): SandboxFiles => ({
  ...noFiles('this machine has no such thing'),
  provided: true,
  stat: (place) => asked(async () => await statOf(textOf(place))),
  open: (place) =>
    asked(async () => {
      const found = await stat(textOf(place));
      if (found.isDirectory()) throw new FileRefused('is-a-folder', 'it is a folder');
      if (!found.isFile()) throw new FileRefused('not-a-file', 'it is no regular file');
      const end = found.size - 1;
      const content = end < 0 ? Readable.from([]) : createReadStream(textOf(place), { end });
      return { stat: shown(found), start: 0, end: found.size, content };
    }),
  write: (place, { content, mode, overwrite }) =>
    asked(async () => {
      const path = textOf(place);
      const before = await stat(path).catch(() => undefined);
      if (before && !overwrite) throw new FileRefused('exists', 'it is there');
      if (before?.isDirectory()) throw new FileRefused('is-a-folder', 'it is a folder');
      const draft = join(dirname(path), `.draft-${process.pid}`);
      try {
        await pipeline(content, createWriteStream(draft));
        await chmod(draft, mode ?? (before ? before.mode & 0o7777 : 0o644));
        await rename(draft, path);
      } finally {
        await rm(draft, { force: true });
      }
      return { stat: await statOf(path), created: !before };
    }),
  remove: (place, { recursive }) => asked(() => rm(textOf(place), { recursive })),
  mkdir: (place, { parents, mode }) =>
    asked(async () => {
      await mkdir(textOf(place), { recursive: parents, mode: mode ?? 0o755 });
      return { stat: await statOf(textOf(place)), created: true };
    }),
  list: (place, { depth }) =>
    asked(async () => ({ entries: await entriesOf(textOf(place), depth) })),
  readTree: (place) =>
    asked(async () => {
      const cwd = textOf(place);
      if (!(await stat(cwd)).isDirectory()) throw new FileRefused('not-a-folder', 'it is a file');
      const filter = (_path: string, found: Stats | object): boolean =>
        !('isFIFO' in found) || found.isFile() || found.isDirectory() || found.isSymbolicLink();
      return Readable.from(create({ cwd, portable: true, filter }, ['.']), { objectMode: false });
    }),
  writeTree: (place, archive) =>
    asked(async () => {
      const cwd = textOf(place);
      await mkdir(cwd, { recursive: true });
      await pipeline(archive, extract({ cwd, preservePaths: true }));
      return { entries: 0, bytes: 0 };
    }),
});

const PROBLEMS: Readonly<Record<string, FileProblem>> = {
  ENOENT: 'not-found',
  EEXIST: 'exists',
  ENOTDIR: 'not-a-folder',
  EISDIR: 'is-a-folder',
  EACCES: 'denied',
};

const asked = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    const problem = PROBLEMS[code];
    throw problem === undefined ? error : new FileRefused(problem, problem);
  }
};

const textOf = ({ path }: FilePlace): string => path.toString();

const shown = (found: Stats): FileStat => ({
  kind: found.isFile()
    ? 'file'
    : found.isDirectory()
      ? 'folder'
      : found.isSymbolicLink()
        ? 'link'
        : 'other',
  size: found.size,
  mode: found.mode & 0o7777,
  uid: found.uid,
  gid: found.gid,
  mtimeNs: BigInt(Math.trunc(found.mtimeMs)) * 1_000_000n,
});

const statOf = async (path: string): Promise<FileStat> => {
  const stated = shown(await lstat(path));
  return stated.kind === 'link' ? { ...stated, target: Buffer.from(await readlink(path)) } : stated;
};

const entriesOf = async (folder: string, depth: number, below = ''): Promise<FileEntry[]> => {
  const entries: FileEntry[] = [];
  for (const name of (await readdir(join(folder, below))).sort()) {
    const path = join(below, name);
    const stated = await statOf(join(folder, path));
    entries.push({ path: Buffer.from(path), stat: stated });
    if (stated.kind === 'folder' && depth > 1)
      entries.push(...(await entriesOf(folder, depth - 1, path)));
  }
  return entries;
};
