import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const made = new Set<string>();

/** All measured things lie on one disk. Sandboxes' uids pass through it. */
export const temporaryFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'sandpool-bench-'));
  chmodSync(folder, 0o711);
  made.add(folder);
  return folder;
};

export const removeTemporaryFolder = (folder: string): void => {
  rmSync(folder, { recursive: true, force: true });
  made.delete(folder);
};

export const removeTemporaryFolders = (): void => {
  for (const folder of [...made]) removeTemporaryFolder(folder);
};
