import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { ImageRefused } from './image-refused.ts';
import { hasCode } from './has-code.ts';

/** Never blocks, even if the path is a fifo. */
export const openPlainFile = async (
  path: string,
  what: string,
): Promise<{ readonly handle: FileHandle; readonly size: number }> => {
  const handle = await open(
    path,
    constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY,
  ).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) throw new ImageRefused(`${what} is missing`);
    if (hasCode(error, 'EACCES', 'EPERM', 'ELOOP', 'ENXIO'))
      throw new ImageRefused(`${what} cannot be read`);
    throw error;
  });
  const found = await handle.stat();
  if (found.isFile()) return { handle, size: found.size };
  await handle.close();
  throw new ImageRefused(`${what} is not a regular file`);
};

/** Throws ImageRefused unless the file is plain and at most `limit` bytes. */
export const readBounded = async (path: string, what: string, limit: number): Promise<Buffer> => {
  const { handle, size } = await openPlainFile(path, what);
  try {
    if (size > limit) throw new ImageRefused(`${what} is larger than ${limit} bytes`);
    const bytes = Buffer.alloc(size);
    const { bytesRead } = await handle.read(bytes, 0, size, 0);
    return bytes.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
};
