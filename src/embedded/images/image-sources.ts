import { createHash } from 'node:crypto';
import { realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ImageReference } from './image-reference.ts';

/** Where an image's folder or layout lies, and what it looked like: with another `stamp` it is to be looked at again. */
export interface ImageSource {
  readonly path: string;
  readonly stamp: string;
}

/** It is not there, or can't be used where it is. The message names no path of the host. */
export class SourceRefused extends Error {
  override readonly name = 'SourceRefused';
}

type Named = Exclude<ImageReference, { kind: 'host' }>;

/** Looks for the name in each folder in turn. Rejects with SourceRefused. */
export const findSource = async (directories: readonly string[], reference: Named): Promise<ImageSource> => {
  for (const directory of directories) {
    const place = join(directory, reference.name);
    const found = await stat(place).catch(() => undefined);
    if (!found?.isDirectory()) continue;
    const path = await realpath(place);
    if (reference.kind === 'dir') await requireOpen(path);
    return { path, stamp: await stampOf(reference.kind === 'dir' ? ['', 'etc', 'home', 'etc/passwd', 'etc/group'] : ['index.json', 'oci-layout'], path) };
  }
  throw new SourceRefused('there is no such image');
};

/** Sandboxes mount it under host uids of their own. */
const requireOpen = async (path: string): Promise<void> => {
  if (process.getuid?.() !== 0) return;
  for (let at = path; ; at = dirname(at)) {
    const { mode } = await stat(at);
    if ((mode & 0o001) === 0) throw new SourceRefused('its folder, or one above it, does not let everyone through (chmod o+x)');
    if (at === dirname(at)) return;
  }
};

const stampOf = async (names: readonly string[], path: string): Promise<string> => {
  const stamp = createHash('sha256').update(path);
  for (const name of names) {
    const found = await stat(join(path, name), { bigint: true }).catch(() => undefined);
    stamp.update(found ? `${found.dev}:${found.ino}:${found.size}:${found.mtimeNs}:${found.ctimeNs};` : '-;');
  }
  return stamp.digest('hex');
};
