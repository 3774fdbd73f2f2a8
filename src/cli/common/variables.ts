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
      'a variable of what is run in it; without a value, as it is here; repeatable',
      repeated,
    )
    .option(
      '--env-file <file>',
      'variables, as NAME=VALUE a line; - is standard input; repeatable',
      repeated,
    );

/**
 * Reads variables from the options: files first, later options override earlier ones. Errors never
 * show a value. Returns undefined without variables.
 */
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
      throw new CliFailure(`--env ${name}: there is no such variable here`, [
        `give it a value: --env ${name}=…`,
      ]);
    found.set(name, value);
  }
  return found.size === 0 ? undefined : Object.fromEntries(found);
};

/** Takes each line literally, without unquoting. Skips empty lines and comments. */
const linesOf = (file: string, text: string): readonly (readonly [string, string])[] =>
  text.split(/\r?\n/).flatMap((line, index) => {
    if (line.trim() === '' || line.startsWith('#')) return [];
    const at = line.indexOf('=');
    const where = `line ${index + 1} of ${file === '-' ? 'standard input' : file}`;
    if (at < 0)
      throw new CliFailure(`${where} is no NAME=VALUE`, ['lines that begin with # are left out']);
    requireName(line.slice(0, at), where);
    return [[line.slice(0, at), line.slice(at + 1)] as const];
  });

const requireName = (name: string, where: string): void => {
  if (!VARIABLE_NAME.test(name))
    throw new CliFailure(`${where}: a variable's name is of letters, digits and underscores`, [
      'it begins with none of the digits, and is 128 characters long at most',
    ]);
};
