import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';

/** Folder inside a sandbox, last on its PATH, for names that programs expect. */
export const NAMES_INSIDE = '/.sandpool/bin';

/** Where programs of /usr are looked for, in the order of PATH. */
const FOLDERS = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin'] as const;
const NAMES = [
  ['python', 'python3'],
  ['pip', 'pip3'],
] as const;

/**
 * Makes bubblewrap's options for links such as `python` to `python3`, if the machine has only the
 * latter.
 */
export const everydayNames = (): readonly string[] =>
  NAMES.flatMap(([name, program]) => {
    const found = pathOf(program);
    return found === undefined || pathOf(name) !== undefined
      ? []
      : ['--symlink', found, join(NAMES_INSIDE, name)];
  });

const pathOf = (program: string): string | undefined =>
  FOLDERS.map((folder) => join(folder, program)).find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
