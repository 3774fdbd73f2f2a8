import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { chmod, mkdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CliFailure } from '../failure.ts';

/**
 * What is to be sent: its bytes, of which nothing is opened before they are asked for, and what is
 * known of them.
 */
export interface Source {
  readonly bytes: AsyncIterable<Buffer>;
  readonly name: string | undefined;
  readonly size: number | undefined;
  readonly mode: number;
}

const FILE_MODE = 0o644;

export const isFolderHere = async (path: string): Promise<boolean | undefined> =>
  await stat(path).then(
    (found) => found.isDirectory(),
    (error: unknown) => {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw unusable(path, error);
    },
  );

export const fileSource = async (path: string): Promise<Source> => {
  const found = await stat(path).catch((error: unknown) => {
    throw unusable(path, error);
  });
  return {
    bytes: bytesOf(path),
    name: basename(resolve(path)),
    size: found.isFile() ? found.size : undefined,
    mode: found.mode & 0o777,
  };
};

async function* bytesOf(path: string): AsyncGenerator<Buffer, void, undefined> {
  try {
    for await (const chunk of createReadStream(path)) yield Buffer.from(chunk);
  } catch (error) {
    throw unusable(path, error);
  }
}

export const streamSource = (stdin: Readable): Source => ({
  bytes: stdin,
  name: undefined,
  size: undefined,
  mode: FILE_MODE,
});

/** A folder's content as an archive; links as links. */
export const folderSource = (path: string): Source => ({
  bytes: archiveOf(path),
  name: basename(resolve(path)),
  size: undefined,
  mode: FILE_MODE,
});

async function* archiveOf(path: string): AsyncGenerator<Buffer, void, undefined> {
  const { create } = await import('tar');
  yield* create({ cwd: path, portable: true }, ['.']) as AsyncIterable<Buffer>;
}

/** Writes a file whole or not at all. */
export const writeFileHere = async (
  path: string,
  bytes: AsyncIterable<Buffer>,
  mode: number,
): Promise<void> => {
  const temporary = join(dirname(path), `.${basename(path)}.sandpool-${process.pid}`);
  try {
    await pipeline(bytes, createWriteStream(temporary, { flags: 'wx', mode: 0o600 })).catch(
      (error: unknown) => {
        throw unusable(path, error);
      },
    );
    await chmod(temporary, mode);
    await rename(temporary, path).catch((error: unknown) => {
      throw unusable(path, error);
    });
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
};

/** Resolves once the reader took it all; one that has left ends the copy. */
export const writeStream = async (
  stdout: Writable,
  bytes: AsyncIterable<Buffer>,
): Promise<void> => {
  for await (const piece of bytes) {
    if (stdout.destroyed) return;
    if (!stdout.write(piece)) await Promise.race([once(stdout, 'drain'), once(stdout, 'close')]);
  }
};

/**
 * Unpacks an archive that a sandbox made, which may be hostile: nothing lands outside the folder,
 * through links neither; devices are left out, owners and setuid bits are not taken over.
 */
export const unpackHere = async (folder: string, bytes: AsyncIterable<Buffer>): Promise<void> => {
  const { extract } = await import('tar');
  await mkdir(folder, { recursive: true }).catch((error: unknown) => {
    throw unusable(folder, error);
  });
  const target = extract({
    cwd: folder,
    preserveOwner: false,
    strict: false,
    maxMetaEntrySize: 1_048_576,
    filter: (_path, entry) => {
      if (!('type' in entry) || !KEPT.has(entry.type)) return false;
      if (entry.mode !== undefined) entry.mode &= 0o777;
      return true;
    },
  });
  // Not by `pipeline`, which waits for ever for the end of this kind of stream when its last entries
  // are left out.
  const source = Readable.from(bytes);
  await new Promise<void>((resolve, reject) => {
    source.once('error', reject);
    target.once('error', reject).once('finish', () => resolve());
    source.pipe(target as unknown as Writable);
  });
};

const KEPT: ReadonlySet<string> = new Set([
  'File',
  'OldFile',
  'ContiguousFile',
  'Directory',
  'SymbolicLink',
  'Link',
]);

const unusable = (path: string, error: unknown): unknown => {
  const code = codeOf(error);
  if (code === undefined) return error;
  const why: Readonly<Record<string, string>> = {
    ENOENT: 'does not exist',
    EACCES: 'may not be used by this user',
    EISDIR: 'is a folder',
    ENOSPC: 'does not fit: the disk is full',
  };
  return new CliFailure(`${path} ${why[code] ?? `can’t be used: ${code}`}`, [], { cause: error });
};

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined;
