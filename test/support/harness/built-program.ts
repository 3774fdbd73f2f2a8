import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const TSX = fileURLToPath(import.meta.resolve('tsx'));

/**
 * Program and arguments for a module of src/, named without its ending. A fresh build starts in a
 * quarter of the processor time.
 */
export const programOf = (module: string): readonly string[] =>
  isBuilt()
    ? [process.execPath, join(ROOT, 'dist', `${module}.js`)]
    : [process.execPath, '--import', TSX, join(ROOT, 'src', `${module}.ts`)];

/** Undefined if src/ is newer or there is no build. */
export const freshBuild = (): string | undefined => (isBuilt() ? join(ROOT, 'dist') : undefined);

let built: boolean | undefined;
const isBuilt = (): boolean => (built ??= buildIsFresh());

const buildIsFresh = (): boolean => {
  const since = statSync(join(ROOT, 'dist/.built'), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).every(
    (file) => statSync(join(ROOT, 'src', file)).mtimeMs <= since,
  );
};
