import { execFile, type ExecFileException } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { rememberChild } from '../../../local-cluster/started-processes.ts';
import { NEVER_COMES_MS } from '../../support/harness/eventually.ts';

const PINNED = fileURLToPath(new URL('requirements.txt', import.meta.url));
const SUITE = fileURLToPath(new URL('sdk_suite.py', import.meta.url));
const RESULTS = fileURLToPath(new URL('shown_results.py', import.meta.url));
const STARTS = fileURLToPath(new URL('refused_starts.py', import.meta.url));
const SOURCES = fileURLToPath(new URL('../../../src/http/e2b/interpreter', import.meta.url));

/** Where the packages of Python are, in a cache. */
export const folderOfPackages = (
  cache = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'),
): string => {
  const hash = createHash('sha256').update(readFileSync(PINNED)).digest('hex').slice(0, 16);
  return join(cache, 'sandpool/python', hash);
};

/** The Python that has the packages; or why there is none: `script/bootstrap --tests` installs it. */
export const pythonWithPackages = (): { readonly path: string } | { readonly why: string } => {
  const folder = folderOfPackages();
  const path = join(folder, 'bin/python');
  if (existsSync(path)) return { path };
  const why = existsSync(`${folder}.why`) ? readFileSync(`${folder}.why`, 'utf8') : '';
  return {
    why:
      'script/bootstrap --tests has not installed the packages of Python: ' +
      (why.trim().split('\n').at(-1) ?? ''),
  };
};

/** They are many; less than a test may take. */
const TIMEOUT_MS = 2 * NEVER_COMES_MS;

export interface Check {
  readonly check: string;
  readonly why: string | null;
}

export interface SuiteTerms {
  readonly env: Readonly<Record<string, string>>;
  readonly silentS: number;
  /** Absent: all that there are. */
  readonly checks?: readonly string[];
}

/** Runs the suite with those variables, and nothing else of this process's own. */
export const checksOf = async (
  python: string,
  mode: 'sync' | 'async',
  { env, silentS, checks = [] }: SuiteTerms,
): Promise<readonly Check[]> =>
  toldBy(await printedBy(python, [SUITE, mode, String(silentS), ...checks], env));

/** Has the engines of the code interpreter show things of matplotlib and IPython. */
export const resultChecksOf = async (python: string): Promise<readonly Check[]> =>
  toldBy(await printedBy(python, [RESULTS, SOURCES]));

/** Has the code interpreter's server find no thread and no process; any Python will do. */
export const startChecksOf = async (python: string): Promise<readonly Check[]> =>
  toldBy(await printedBy(python, [STARTS, SOURCES]));

/** Resolves with what a program printed that ended well; of another one the error tells how it ended. */
export const printedBy = async (
  python: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> => {
  const running = promisify(execFile)(python, args, {
    timeout: TIMEOUT_MS,
    maxBuffer: 16 << 20,
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      PYTHONUTF8: '1',
      PYTHONDONTWRITEBYTECODE: '1',
      ...env,
    },
  });
  rememberChild(`python ${args.join(' ').slice(0, 200)}`, running.child);
  const { stdout } = await running.catch((cause: unknown) => {
    throw new Error(toldOf(cause as Failed, args), { cause });
  });
  return stdout;
};

/** What a process that failed is known by: its end is a code or a signal. */
type Failed = ExecFileException & { readonly stdout: string; readonly stderr: string };

const toldOf = ({ code, signal, killed, stdout, stderr }: Failed, args: readonly string[]) =>
  [
    `python ${args.join(' ').slice(0, 200)}: code ${code}, signal ${signal}` +
      (killed ? `, not done within ${TIMEOUT_MS / 1_000} s` : ''),
    `stdout: ${lastOf(stdout)}`,
    `stderr: ${lastOf(stderr)}`,
  ].join('\n');

const lastOf = (text: string): string => text.slice(-4_000) || '(nothing)';

const toldBy = (printed: string): readonly Check[] =>
  printed
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Check);
