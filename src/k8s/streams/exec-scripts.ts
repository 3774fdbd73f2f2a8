import { readFileSync } from 'node:fs';

/**
 * Holds what runs inside containers, by a POSIX /bin/sh with its builtins alone; each script says
 * what it is given and prints. Nothing is ever put into the text of a script: what is particular
 * comes as arguments, or by standard input, which no API server logs.
 */
export interface ExecScripts {
  readonly exec: string;
  readonly terminal: string;
  /** As `terminal`, for a command with variables. */
  readonly terminalEnv: string;
  readonly end: string;
  readonly signal: string;
}

const FOLDER = new URL('scripts/', import.meta.url);

/**
 * Reads the files of a script, one after the other. Lines that say nothing to the shell are left
 * out: what is sent is part of an address.
 */
const scriptText = (folder: URL, ...names: readonly string[]): string =>
  names
    .flatMap((name) => readFileSync(new URL(`${name}.sh`, folder), 'utf8').split('\n'))
    .map((line) => line.trimStart())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .join('\n');

let scripts: ExecScripts | undefined;

/** Returns the scripts. The files are read once for a process. */
export const execScripts = (): ExecScripts =>
  (scripts ??= {
    exec: scriptText(FOLDER, 'begin', 'await-end', 'exec'),
    terminal: scriptText(FOLDER, 'begin', 'terminal'),
    terminalEnv: scriptText(FOLDER, 'begin', 'terminal-env'),
    end: scriptText(FOLDER, 'end'),
    signal: scriptText(FOLDER, 'signal'),
  });

export interface ExecOrder {
  readonly argv: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The line that comes before the exit code. */
  readonly token: string;
}

/**
 * The order as exec.sh reads it: of each part its kind, its number of line ends, and itself.
 * Throws at a NUL.
 */
export const execOrder = ({ argv, cwd, env = {}, token }: ExecOrder): Buffer => {
  const parts: (readonly [string, string])[] = [
    ...(cwd === undefined ? [] : [['cwd', cwd] as const]),
    ...Object.entries(env).map(([name, value]) => ['env', `${name}=${value}`] as const),
    ...argv.map((argument) => ['arg', argument] as const),
    ['run', token],
  ];
  if (parts.some(([, value]) => value.includes('\0')))
    throw new Error('a command, its folder or its environment holds a NUL');
  return Buffer.from(
    parts.map(([kind, value]) => `${kind}\n${value.split('\n').length - 1}\n${value}\n`).join(''),
  );
};
