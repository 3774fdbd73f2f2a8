import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const SHARED = ['node_modules', 'config'];
const OWN = ['bin', 'dist', 'native/build-output', 'package.json'];

/** Replaces a text that occurs once in one of the build's files. */
export interface Change {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

export interface Build {
  /** Started as the daemon's own folder. */
  readonly root: string;
  readonly launcher: string;
  remove(): void;
}

/** A copy of the build with these changes. */
export const aBuild = (...changes: readonly Change[]): Build => {
  const root = mkdtempSync(join(tmpdir(), 'sandpool-build-'));
  for (const name of SHARED) symlinkSync(join(ROOT, name), join(root, name));
  for (const name of OWN)
    cpSync(join(ROOT, name), join(root, name), {
      recursive: true,
      filter: (path) => !path.endsWith('.map'),
    });
  for (const { file, from, to } of changes) {
    const text = readFileSync(join(root, file), 'utf8');
    if (text.split(from).length !== 2) throw new Error(`${file} does not have this once: ${from}`);
    writeFileSync(
      join(root, file),
      text.replace(from, () => to),
    );
  }
  return {
    root,
    launcher: join(root, 'native/build-output/launcher'),
    remove: () => rmSync(root, { recursive: true }),
  };
};
