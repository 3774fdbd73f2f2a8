import { homedir } from 'node:os';
import { resolve } from 'node:path';

/** Text under names, as the environment and a command's options give it. */
export type NamedTexts = Readonly<Record<string, string | undefined>>;

/** This process's environment: the one place that reads it. */
export const environment = (): NamedTexts => process.env;

/** A variable that is set and not empty. */
export const variable = (env: NamedTexts, name: string): string | undefined =>
  env[name] === '' ? undefined : env[name];

export const defaultDataDir = (env: NamedTexts): string =>
  process.getuid?.() === 0
    ? '/var/lib/sandpool'
    : resolve(variable(env, 'HOME') ?? homedir(), '.local/share/sandpool');

/**
 * The data folder by flag, SANDPOOL_DATA_DIR or default; undefined where a file of settings has to
 * be asked.
 */
export const plainDataDir = (env: NamedTexts, flag?: string): string | undefined => {
  const named = flag ?? variable(env, 'SANDPOOL_DATA_DIR');
  if (named !== undefined) return resolve(named);
  return variable(env, 'SANDPOOL_CONFIG') === undefined ? defaultDataDir(env) : undefined;
};
