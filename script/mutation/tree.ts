import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { marked } from './lua-mutants.ts';

/** Not in git, but needed by tests. */
const MADE = ['src/cli/client/generated', 'native/build-output'];
const RUNNER = 'script/mutation/tests-in-tree.ts';
const CONFIG = 'tsconfig.mutants.json';
const COMPILED = ['src', 'test', 'local-cluster', 'script', 'bench', 'simulation'];

/**
 * Compiled beside the sources, which Node loads in a third of tsx's time. Processes that tests
 * start by tsx run the TypeScript.
 */
export const makeTree = (
  root: string,
  folder: string,
  sources: ReadonlyMap<string, string>,
): void => {
  rmSync(folder, { recursive: true, force: true });
  for (const file of [...filesOf(root), ...MADE]) {
    if (!existsSync(join(root, file))) continue;
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    cpSync(join(root, file), join(folder, file), { recursive: true });
  }
  mkdirSync(join(folder, dirname(RUNNER)), { recursive: true });
  cpSync(new URL('tests-in-tree.ts', import.meta.url), join(folder, RUNNER));
  for (const [file, text] of sources) writeFileSync(join(folder, file), text);
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  compile(folder);
};

/** Also those that git does not know yet. */
export const filesOf = (root: string, ...below: readonly string[]): readonly string[] =>
  execFileSync(
    'git',
    ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', ...below],
    { cwd: root, encoding: 'utf8', maxBuffer: 64 * 2 ** 20 },
  )
    .split('\0')
    .filter((file) => file !== '' && existsSync(join(root, file)))
    .toSorted();

export const writeScripts = (
  root: string,
  folder: string,
  { marks }: { readonly marks: boolean },
): void => {
  for (const file of filesOf(root, 'src/redis/lua')) {
    const text = readFileSync(join(root, file), 'utf8');
    writeFileSync(join(folder, file), marks ? marked(text, file) : text);
  }
};

const compile = (folder: string): void => {
  const compilerOptions = {
    noEmit: false,
    noCheck: true,
    // another tree's results say nothing
    incremental: false,
    tsBuildInfoFile: null,
    allowImportingTsExtensions: false,
    rewriteRelativeImportExtensions: true,
    rootDir: '.',
  };
  writeFileSync(
    join(folder, CONFIG),
    JSON.stringify({ extends: './tsconfig.json', compilerOptions, include: COMPILED }),
  );
  const { status, stdout } = spawnSync(
    process.execPath,
    ['node_modules/typescript/bin/tsc', '-p', CONFIG],
    { cwd: folder, encoding: 'utf8' },
  );
  if (status !== 0 || !existsSync(join(folder, RUNNER.replace(/ts$/, 'js'))))
    throw new Error(`can't compile ${folder}: ${stdout}`);
};
