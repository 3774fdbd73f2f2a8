import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeWherePresent } from './cgroup-folders.ts';

const V2 = 'cgroup.freeze';
const V1 = 'freezer.state';

/** A process in the kernel may take long. */
const PATIENCE_MS = 2_000;
const LOOK_MS = 1;

export const canFreeze = (folders: readonly string[]): boolean =>
  folders.some((folder) => existsSync(join(folder, V2)) || existsSync(join(folder, V1)));

export const isFrozen = (folders: readonly string[]): boolean =>
  folders.some(
    (folder) =>
      contentOf(folder, V2) === '1' || ['FROZEN', 'FREEZING'].includes(contentOf(folder, V1)),
  );

/** May be repeated. */
export const thaw = (folders: readonly string[]): void => {
  write(folders, { v2: '0', v1: 'THAWED' });
};

/**
 * No process runs afterwards, nor any that joins later. On a timeout, rejects and thaws. May be
 * repeated.
 */
export const freeze = async (folders: readonly string[]): Promise<void> => {
  if (!canFreeze(folders)) throw new Error('it was started before sandboxes could be paused');
  const until = performance.now() + PATIENCE_MS;
  write(folders, { v2: '1', v1: 'FROZEN' });
  while (!folders.every(standsStill)) {
    if (performance.now() > until) {
      thaw(folders);
      throw new Error('one of its processes does not stop');
    }
    await sleep(LOOK_MS);
    if (!isFrozen(folders)) throw new Error('it was resumed in the meantime');
    write(folders, { v2: '1', v1: 'FROZEN' });
  }
};

/** A folder without a freezer counts as frozen. */
const standsStill = (folder: string): boolean =>
  /^(?:$|FROZEN$)/.test(contentOf(folder, V1)) &&
  (contentOf(folder, V2) === '' || /^frozen 1$/m.test(contentOf(folder, 'cgroup.events')));

const write = (
  folders: readonly string[],
  { v2, v1 }: { readonly v2: string; readonly v1: string },
): void => {
  for (const folder of folders) {
    if (existsSync(join(folder, V2))) writeWherePresent(join(folder, V2), v2);
    if (existsSync(join(folder, V1))) writeWherePresent(join(folder, V1), v1);
  }
};

const contentOf = (folder: string, file: string): string => {
  try {
    return readFileSync(join(folder, file), 'utf8').trim();
  } catch {
    return '';
  }
};
