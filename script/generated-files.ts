import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

export type GeneratedFiles = ReadonlyMap<string, string>;

/** Missing or different, below the root of the repository. */
export const staleFiles = (files: GeneratedFiles, root = ROOT): readonly string[] =>
  [...files].filter(([path, text]) => contentOf(join(root, path)) !== text).map(([path]) => path);

/** Returns the paths of changed files. */
export const writeFiles = (files: GeneratedFiles, root = ROOT): readonly string[] => {
  const stale = staleFiles(files, root);
  for (const path of stale) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), files.get(path) ?? '');
  }
  return stale;
};

const contentOf = (file: string): string | undefined => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
};
