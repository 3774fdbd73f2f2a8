import type { Command } from 'commander';
import { VARIABLE_NAME } from '../../model/claim-terms.ts';
import type { CliContext } from './context.ts';
import { CliFailure } from './failure.ts';
import { readText } from './document.ts';

export interface VariableOptions {
  readonly env?: readonly string[];
  readonly envFile?: readonly string[];
}

const repeated = (text: string, before: readonly string[] = []): readonly string[] => [
  ...before,
  text,
];

export const addVariableOptions = (command: Command): Command =>
  command
    .option(
      '-e, --env <name[=value]>',
      'an environment variable for the sandbox; without a value, copied from here; repeatable',
      repeated,
    )
    .option(
      '--env-file <file>',
      'file of variables, one NAME=VALUE per line; - is standard input; repeatable',
      repeated,
    );

/** Files first; later options override earlier ones. Errors never show a value. */
export const variablesOf = async (
  context: CliContext,
  { env = [], envFile = [] }: VariableOptions,
): Promise<Readonly<Record<string, string>> | undefined> => {
  const found = new Map<string, string>();
  for (const file of envFile)
    for (const [name, value] of linesOf(file, await readText(context, file)))
      found.set(name, value);
  for (const text of env) {
    const at = text.indexOf('=');
    const name = at < 0 ? text : text.slice(0, at);
    requireName(name, '--env');
    const value = at < 0 ? context.env[name] : text.slice(at + 1);
    if (value === undefined)
      throw new CliFailure(`--env ${name}: this variable is not set here`, [
        `give it a value: --env ${name}=…`,
      ]);
    found.set(name, value);
  }
  return found.size === 0 ? undefined : Object.fromEntries(found);
};

/** Takes lines literally, without unquoting. Skips empty ones and comments. */
const linesOf = (file: string, text: string): readonly (readonly [string, string])[] =>
  text.split(/\r?\n/).flatMap((line, index) => {
    if (line.trim() === '' || line.startsWith('#')) return [];
    const at = line.indexOf('=');
    const where = `line ${index + 1} of ${file === '-' ? 'standard input' : file}`;
    if (at < 0)
      throw new CliFailure(`${where} is not NAME=VALUE`, ['lines that begin with # are ignored']);
    requireName(line.slice(0, at), where);
    return [[line.slice(0, at), line.slice(at + 1)] as const];
  });

const requireName = (name: string, where: string): void => {
  if (!VARIABLE_NAME.test(name))
    throw new CliFailure(
      `${where}: the name of a variable consists of letters, digits and underscores`,
      ['it must not begin with a digit, and has at most 128 characters'],
    );
};
