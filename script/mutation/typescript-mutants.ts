import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Mutant, mutantsAt } from './mutant.ts';

/** The last one for Node 20. */
const VERSION = '9.6.1';
const INSTALL_MS = 300_000;

/** From Stryker's instrumenter, from 0. */
interface Position {
  readonly line: number;
  readonly column: number;
}
interface Instrumented {
  readonly files: readonly { readonly name: string; readonly content: string }[];
  readonly mutants: readonly {
    readonly id: string;
    readonly fileName: string;
    readonly mutatorName: string;
    readonly replacement: string;
    readonly location: { readonly start: Position; readonly end: Position };
  }[];
}
interface Instrumenter {
  instrument(
    files: readonly { readonly name: string; readonly mutate: true; readonly content: string }[],
    options: object,
  ): Promise<Instrumented>;
}

/**
 * Also the files with all of them in place: `__stryker__.activeMutant` selects one, and
 * `__stryker__.mutantCoverage` counts.
 */
export const typescriptMutants = async (
  root: string,
  files: readonly string[],
): Promise<{
  readonly mutants: readonly Mutant[];
  readonly sources: ReadonlyMap<string, string>;
}> => {
  const texts = new Map(files.map((file) => [file, readFileSync(join(root, file), 'utf8')]));
  const instrumenter = await stryker();
  const { files: sources, mutants } = await instrumenter.instrument(
    [...texts].map(([name, content]) => ({ name, mutate: true, content })),
    { plugins: null, ignorers: [], excludedMutations: [] },
  );
  return {
    sources: new Map(sources.map(({ name, content }) => [name, content])),
    mutants: [...texts].flatMap(([file, text]) => {
      const offset = offsetsIn(text);
      const own = mutants.filter(({ fileName }) => fileName === file);
      return mutantsAt(
        text,
        own.map(({ id, mutatorName, replacement, location }) => ({
          id,
          file,
          mutator: mutatorName,
          replacement,
          start: offset(location.start),
          end: offset(location.end),
        })),
      );
    }),
  };
};

const offsetsIn = (text: string): ((position: Position) => number) => {
  const starts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];
  return ({ line, column }) => (starts[line] ?? text.length) + column;
};

/** Into the user's cache: 25 MB that nothing else needs. */
const stryker = async (): Promise<Instrumenter> => {
  const folder = join(
    process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'),
    'sandpool/stryker',
    VERSION,
  );
  const module = join(
    folder,
    'node_modules/@stryker-mutator/instrumenter/dist/src/instrumenter.js',
  );
  if (!existsSync(module)) {
    console.log(`fetching Stryker's instrumenter ${VERSION} into ${folder}`);
    mkdirSync(folder, { recursive: true });
    const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-save'];
    const { status, stderr } = spawnSync(
      'npm',
      ['install', '--prefix', folder, ...quiet, `@stryker-mutator/instrumenter@${VERSION}`],
      { encoding: 'utf8', timeout: INSTALL_MS },
    );
    if (status !== 0) throw new Error(`npm can't fetch Stryker's instrumenter: ${stderr}`);
  }
  const { Instrumenter: Made } = (await import(pathToFileURL(module).href)) as {
    Instrumenter: new (logger: object) => Instrumenter;
  };
  return new Made(SILENT);
};

const SILENT = {
  isDebugEnabled: () => false,
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
};
