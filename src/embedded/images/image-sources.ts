import { createHash } from 'node:crypto';
import { realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ImageReference } from './image-reference.ts';

/** If `stamp` changes, read the source again. */
export interface ImageSource {
  readonly path: string;
  readonly stamp: string;
}

/** The message names no path of the host. */
export class SourceRefused extends Error {
  override readonly name = 'SourceRefused';
}

type Named = Exclude<ImageReference, { kind: 'host' }>;

export const findSource = async (
  directories: readonly string[],
  reference: Named,
): Promise<ImageSource> => {
  for (const directory of directories) {
    const place = join(directory, reference.name);
    const found = await stat(place).catch(() => undefined);
    if (!found?.isDirectory()) continue;
    const path = await realpath(place);
    if (reference.kind === 'dir' && !(await isOpen(path)))
      throw new SourceRefused(
        'its folder, or a folder above it, is not accessible to all users (chmod o+x)',
      );
    return {
      path,
      stamp: await stampOf(
        reference.kind === 'dir'
          ? ['', 'etc', 'home', 'etc/passwd', 'etc/group']
          : ['index.json', 'oci-layout'],
        path,
      ),
    };
  }
  throw new SourceRefused('the image does not exist');
};

/** Under root, sandboxes have their own host uids. */
export const isOpen = async (path: string): Promise<boolean> => {
  if (process.getuid?.() !== 0) return true;
  for (let at = await realpath(path); ; at = dirname(at)) {
    if (((await stat(at)).mode & 0o001) === 0) return false;
    if (at === dirname(at)) return true;
  }
};

const stampOf = async (names: readonly string[], path: string): Promise<string> => {
  const stamp = createHash('sha256').update(path);
  for (const name of names) {
    const found = await stat(join(path, name), { bigint: true }).catch(() => undefined);
    stamp.update(
      found ? `${found.dev}:${found.ino}:${found.size}:${found.mtimeNs}:${found.ctimeNs};` : '-;',
    );
  }
  return stamp.digest('hex');
};
