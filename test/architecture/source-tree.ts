import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { importsOf, type ScannedCode, scanCode } from '../../script/source-code.ts';

export interface SourceFile extends ScannedCode {
  /** Below the folder that was read: `actors/supervisor.ts`. */
  readonly path: string;
  /** The folder below that, or for a file right in it its own name: `actors`, `main.ts`. */
  readonly part: string;
  readonly text: string;
  readonly lines: number;
  /** Files that it imports, by path from that folder: `model/pool.ts`, `../src/model/pools/pool.ts`. */
  readonly imports: readonly string[];
  /** Packages and built-ins that it imports, as written. */
  readonly packages: readonly string[];
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Every TypeScript file of src/, or of another folder of the repository. */
export const readSourceTree = (folder = 'src'): readonly SourceFile[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .sort()
    .map((path) => {
      const source = readFileSync(join(ROOT, folder, path), 'utf8');
      const code = scanCode(source);
      const specifiers = importsOf(code);
      return {
        ...code,
        path,
        part: partOf(path),
        text: source,
        lines: source.split('\n').length - 1,
        imports: specifiers
          .filter((name) => name.startsWith('.'))
          .map((name) => normalize(join(dirname(path), name))),
        packages: specifiers.filter((name) => !name.startsWith('.')),
      };
    });

export const partOf = (path: string): string => path.split('/')[0] ?? '';

/** Groups of files that import each other in a circle. */
export const cyclesOf = (
  files: readonly Pick<SourceFile, 'path' | 'imports'>[],
): readonly string[][] => {
  const imports = new Map(files.map((file) => [file.path, file.imports]));
  const done = new Set<string>();
  const cycles: string[][] = [];
  const visit = (path: string, above: readonly string[]): void => {
    const start = above.indexOf(path);
    if (start >= 0) cycles.push([...above.slice(start), path]);
    if (start >= 0 || done.has(path)) return;
    for (const next of imports.get(path) ?? []) visit(next, [...above, path]);
    done.add(path);
  };
  for (const { path } of files) visit(path, []);
  return cycles;
};
