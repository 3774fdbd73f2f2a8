import { homedir } from 'node:os';
import { resolve } from 'node:path';

/** Texts by name, from the environment or a command's options. */
export type NamedTexts = Readonly<Record<string, string | undefined>>;

/** This process's environment. Only this function reads it. */
export const environment = (): NamedTexts => process.env;

/** Value of a variable; undefined if it is unset or empty. */
export const variable = (env: NamedTexts, name: string): string | undefined =>
  env[name] === '' ? undefined : env[name];

export const defaultDataDir = (env: NamedTexts): string =>
  process.getuid?.() === 0
    ? '/var/lib/sandpool'
    : resolve(variable(env, 'HOME') ?? homedir(), '.local/share/sandpool');

/** Data folder by flag, SANDPOOL_DATA_DIR or default; undefined if a settings file decides. */
export const plainDataDir = (env: NamedTexts, flag?: string): string | undefined => {
  const named = flag ?? variable(env, 'SANDPOOL_DATA_DIR');
  if (named !== undefined) return resolve(named);
  return variable(env, 'SANDPOOL_CONFIG') === undefined ? defaultDataDir(env) : undefined;
};
