import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { chmod, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ConnectionFailed } from '../client/api-error.ts';
import { CliFailure } from './failure.ts';

/** Opens nothing before its bytes are read. */
export interface Source {
  readonly bytes: AsyncIterable<Buffer>;
  readonly name: string | undefined;
  readonly size: number | undefined;
  /** Undefined for standard input. */
  readonly mode: number | undefined;
}

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
  // Files under /proc claim to be empty.
  const size = found.isFile() && found.size > 0 ? found.size : undefined;
  return {
    bytes: bytesOf(path, size),
    name: basename(resolve(path)),
    size,
    mode: found.mode & 0o777,
  };
};

/** Reads at most the file's size, since the file may grow. Throws if it has shrunk. */
async function* bytesOf(
  path: string,
  size: number | undefined,
): AsyncGenerator<Buffer, void, undefined> {
  try {
    const bounds = size === undefined ? {} : { end: size - 1 };
    let left = size ?? 0;
    for await (const chunk of createReadStream(path, bounds)) {
      left -= chunk.length;
      yield Buffer.from(chunk);
    }
    if (left > 0) throw new CliFailure(`${path} became shorter during the copy`);
  } catch (error) {
    throw unusable(path, error);
  }
}

export const streamSource = (stdin: Readable): Source => ({
  bytes: stdin,
  name: undefined,
  size: undefined,
  mode: undefined,
});

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

/** A reader that leaves ends the copy. */
export const writeStream = async (
  stdout: Writable,
  bytes: AsyncIterable<Buffer>,
): Promise<void> => {
  for await (const piece of bytes) {
    if (stdout.destroyed) return;
    if (!stdout.write(piece)) await Promise.race([once(stdout, 'drain'), once(stdout, 'close')]);
  }
};

/** Explains a system error about a local path; returns others unchanged. */
export const unusable = (path: string, error: unknown): Error => {
  const code = codeOf(error);
  if (code === undefined) return error instanceof Error ? error : new Error(String(error));
  const why: Readonly<Record<string, string>> = {
    ENOENT: 'does not exist',
    EACCES: 'is not accessible to this user',
    EISDIR: 'is a folder',
    ENOSPC: 'does not fit: the disk is full',
  };
  return new CliFailure(`${path} ${why[code] ?? `can’t be used: ${code}`}`, [], { cause: error });
};

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error &&
  !(error instanceof ConnectionFailed) &&
  'code' in error &&
  typeof error.code === 'string'
    ? error.code
    : undefined;
