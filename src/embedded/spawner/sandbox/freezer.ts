import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeWherePresent } from './cgroup-folders.ts';

/** Every process in a folder stands still, or none: v2's file and v1's. */
const V2 = 'cgroup.freeze';
const V1 = 'freezer.state';

/** Milliseconds for all processes to stand still; one in the kernel may take so long. */
const PATIENCE_MS = 2_000;
const LOOK_MS = 1;

/** Tells whether processes in these folders can be frozen. */
export const canFreeze = (folders: readonly string[]): boolean =>
  folders.some((folder) => existsSync(join(folder, V2)) || existsSync(join(folder, V1)));

/** Tells whether what is in these folders is frozen, or about to be. */
export const isFrozen = (folders: readonly string[]): boolean =>
  folders.some(
    (folder) =>
      contentOf(folder, V2) === '1' || ['FROZEN', 'FREEZING'].includes(contentOf(folder, V1)),
  );

/** Has what is in these folders go on, at once. May be repeated. */
export const thaw = (folders: readonly string[]): void => {
  write(folders, { v2: '0', v1: 'THAWED' });
};

/**
 * Freezes what is in these folders: no process of them runs once it resolves, nor one that joins
 * them later. Rejects where that takes too long; then they go on. May be repeated.
 */
export const freeze = async (folders: readonly string[]): Promise<void> => {
  if (!canFreeze(folders)) throw new Error('it was started before sandboxes could be paused');
  const until = performance.now() + PATIENCE_MS;
  write(folders, { v2: '1', v1: 'FROZEN' });
  while (!folders.every(standsStill)) {
    if (performance.now() > until) {
      thaw(folders);
      throw new Error('a process of it does not stand still');
    }
    await sleep(LOOK_MS);
    if (!isFrozen(folders)) throw new Error('it was told to go on meanwhile');
    write(folders, { v2: '1', v1: 'FROZEN' });
  }
};

/** A folder without a freezer counts: another one has it. */
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

/** Empty where there is no such file. */
const contentOf = (folder: string, file: string): string => {
  try {
    return readFileSync(join(folder, file), 'utf8').trim();
  } catch {
    return '';
  }
};
